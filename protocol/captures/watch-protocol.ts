/** The protocol of `GET /inspector/ws`: captured requests in real time (docs/protocols/live-view.md). */
import { MINUTE_MS, SECOND_MS } from "../../shared/time.ts";
import type { CaptureSummary } from "../schemas/inspector/captures.ts";
import { getCaptureTimeMs, toCaptureIdPrefix } from "./id.ts";

/** Precedes an access token in `Sec-WebSocket-Protocol`: browsers can set no other header. */
export const WATCH_BEARER_PREFIX = "bearer.";
/** Offered beside the token, and accepted in its place, so that no response contains the token. */
export const WATCH_PROTOCOL = "underpass.inspector";
/** Answered even while the organization's object sleeps. */
export const WATCH_PING = "ping";
export const WATCH_PONG = "pong";
/** How often a watcher sends a ping. */
export const WATCH_PING_INTERVAL_MS = 15 * SECOND_MS;

/** Why the service closes a watcher's connection. */
export const WATCH_CLOSE = {
  /** The session was ended, or the user is no longer a member. Sign in again. */
  session_ended: 4401,
  /** The watcher did not receive the messages in time. Reconnect, and read faster. */
  too_slow: 4408,
  /** The server restarts. Reconnect. */
  going_away: 4503,
} as const;
export type WatchCloseName = keyof typeof WATCH_CLOSE;

/** A message to a watcher. One without `type` is a captured request itself. */
export type WatchMessage =
  | CaptureSummary
  | { type: "requests"; requests: CaptureSummary[] }
  /** `count` requests were not sent. */
  | { type: "missed"; count: number }
  /** The watcher must send it back unchanged. */
  | { type: "sync"; n: number };

/** A request that was received this long before the newest one may have ended while the connection was lost. */
const CATCH_UP_OVERLAP_MS = MINUTE_MS;

/**
 * After a lost connection, a watcher reads the requests that it missed from the list, which is sorted by id.
 * @param newestId of the requests that it has. @returns where reading ends: the list begins with the newest request.
 */
export function getCatchUpStart(newestId: string): string {
  return toCaptureIdPrefix(getCaptureTimeMs(newestId) - CATCH_UP_OVERLAP_MS);
}
