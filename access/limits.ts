/** Bounds that several files of access/ share, each with its unit in its name. */

/** How long an isolate believes what an issuer said of its keys. */
export const ISSUER_KEYS_MAX_MS = 10 * 60_000;
/** How long an issuer that did not answer is left alone. */
export const ISSUER_DOWN_MS = 5_000;
