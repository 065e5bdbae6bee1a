/** How the API hands over a watcher, after it has verified that the caller may watch the organization. */
import { z } from "zod";
import { INTERNAL_HOST } from "../internal-host.ts";

export const WATCH_URL = `https://${INTERNAL_HOST}/watch`;
export const WATCH_HEADER = "underpass-watch";

export const WatcherAdmission = z.object({
  /** The id of the caller's session, or of the agent's token that it called with. */
  credentialId: z.uuid(),
  /** The user of the session, or the one who minted the token; null when their account was deleted. */
  userId: z.uuid().nullable(),
  /** null: all tunnels. */
  tunnelId: z.uuid().nullable(),
  /** Several captured requests in one message. */
  isBatched: z.boolean(),
  /** Queries can contain secrets, which a capability token does not give access to. */
  receivesQueries: z.boolean(),
});
export type WatcherAdmission = z.infer<typeof WatcherAdmission>;
