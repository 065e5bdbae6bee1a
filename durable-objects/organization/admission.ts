/** How the API hands a watcher over: by then the session is verified and may watch the organization. */
import { z } from "zod";

/** Under this host, which no visitor's request can carry: the edge refuses it. */
export const WATCH_URL = "https://agent.internal/watch";
export const WATCH_HEADER = "underpass-watch";

export const WatcherAdmission = z.object({
  sessionId: z.uuid(),
  userId: z.uuid(),
  /** null: of all tunnels. */
  tunnelId: z.uuid().nullable(),
  /** Several requests in one message. */
  isBatched: z.boolean(),
});
export type WatcherAdmission = z.infer<typeof WatcherAdmission>;
