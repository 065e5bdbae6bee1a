/** Bounds that several files of access/authenticators/ share, each with its unit in its name. */
import { MINUTE_MS } from "../../shared/time.ts";

/** How long an isolate caches the keys of an issuer. */
export const ISSUER_KEYS_MAX_MS = 10 * MINUTE_MS;
/** How long after a failed request an issuer is not requested again. */
export const ISSUER_DOWN_MS = 5_000;
