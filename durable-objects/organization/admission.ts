/** How the API hands over a watcher, after it has verified that the session may watch the organization. */
import { z } from "zod";

/** The edge refuses this host, so no visitor's request can carry it. */
export const WATCH_URL = "https://agent.internal/watch";
export const WATCH_HEADER = "underpass-watch";

export const WatcherAdmission = z.object({
  sessionId: z.uuid(),
  userId: z.uuid(),
  /** null: all tunnels. */
  tunnelId: z.uuid().nullable(),
  /** Several captured requests in one message. */
  isBatched: z.boolean(),
});
export type WatcherAdmission = z.infer<typeof WatcherAdmission>;
