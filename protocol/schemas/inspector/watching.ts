/** `GET /inspector/ws`: captured requests as they happen (docs/live-view.md). */
import { z } from "zod";
import type { CaptureSummary } from "./captures.ts";

/** In `Sec-WebSocket-Protocol`, before an access token: browsers can set no other header. */
export const WATCH_BEARER_PREFIX = "bearer.";
/** Offered beside it, this is what is granted, so that no answer carries the token. */
export const WATCH_PROTOCOL = "underpass.inspector";
/** Answered even while the organization's object sleeps. */
export const WATCH_PING = "ping";
export const WATCH_PONG = "pong";

/** Why the service closes a watcher's connection. */
export const WATCH_CLOSE = {
  /** The session was ended, or its person is no longer a member. Sign in again. */
  session_ended: 4401,
  /** What was sent did not arrive. Come back, and read faster. */
  too_slow: 4408,
  /** The server restarts. Come back. */
  going_away: 4503,
} as const;
export type WatchCloseName = keyof typeof WATCH_CLOSE;

export const WatchQuery = z.object({
  /** Left out: all tunnels of the organization. */
  tunnel_id: z.uuid().optional(),
  /** `1`: several requests in one message. */
  batch: z.enum(["0", "1"]).default("0"),
});

/** What a watcher gets that has no `type` is a captured request itself. */
export type WatchMessage =
  | CaptureSummary
  | { type: "requests"; requests: CaptureSummary[] }
  /** So many were not sent. */
  | { type: "missed"; count: number }
  /** To be sent back as it is. */
  | { type: "sync"; n: number };

export const SyncReply = z.object({ type: z.literal("sync"), n: z.int().min(0) });
