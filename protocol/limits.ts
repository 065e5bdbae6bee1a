/**
 * Bounds that several layers share or that users encounter, each with its unit in its name. A bound of a single layer is
 * beside its code, or in that layer's `limits.ts`.
 */
import { DAY_MS, MINUTE_MS } from "../shared/time.ts";

// ── The wire between agent and tunnel ──

/** Data is cut into frames of at most this: large enough to be fast, small enough to interleave. */
export const FRAME_DATA_MAX_BYTES = 64 * 1024;
/** A message carries one or more whole frames. */
export const WIRE_MESSAGE_MAX_BYTES = 1024 * 1024;
/** How many bytes either side may send on a stream beyond those that the other has consumed. */
export const STREAM_WINDOW_BYTES = 1024 * 1024;
/** The same for all the streams of a connection together, so that an object stays within 128 MB. */
export const CONNECTION_WINDOW_BYTES = 16 * 1024 * 1024;
/** This much of each stream is outside the connection's window: many stalled streams block none. */
export const STREAM_RESERVE_BYTES = 16 * 1024;
/** The receiver of a stream grants credit again once it has consumed this much. */
export const CREDIT_GRANT_BYTES = 128 * 1024;
/** Headers of a response. Each of them costs the platform far more than its bytes. */
export const RESPONSE_HEADERS_MAX = 256;
/** A response's head as the JSON of its frame. */
export const RESPONSE_HEAD_MAX_BYTES = 128 * 1024;
/** What a WebSocket message that waits or is on its way counts besides its payload. workerd needs about twice as much. */
export const MESSAGE_OVERHEAD_BYTES = 512;
/** The largest WebSocket message of a visitor or a local server: the platform's own maximum. */
export const WEBSOCKET_MESSAGE_MAX_BYTES = 32 * 1024 * 1024;
export const HELLO_TIMEOUT_MS = 10_000;
export const HEARTBEAT_INTERVAL_MS = 5_000;
/** A peer that has sent nothing for this long is treated as gone, even if TCP reports no error. */
export const HEARTBEAT_TIMEOUT_MS = 13_000;
export const CLOSE_REASON_MAX_BYTES = 123;

/** The objects that the visitors of one tunnel can be spread over. */
export const SHARDS_MAX = 16;
/** How many agents may serve one tunnel as a pool. */
export const POOL_AGENTS_MAX = 16;

// ── Reconnecting ──

export const RECONNECT_MAX_MS = 5_000;
/** How long requests in flight may take to finish when an agent or a server shuts down. */
export const DRAIN_TIMEOUT_MS = 10_000;

// ── The API ──

/** Rows in one page of a list; `after` leads to the next page. */
export const LIST_MAX_ROWS = 1_000;
export const TUNNEL_TTL_MAX_SECONDS = 366 * 24 * 3600;
export const HOST_MAX_CHARS = 253;
/** The text that a filter of captured requests looks for in a path. */
export const INSPECTOR_PATH_MAX_CHARS = 1_000;
/** Lists have this much of the path and of the query of a captured request. */
export const LISTED_PATH_MAX_CHARS = 2_000;
export const LISTED_QUERY_MAX_CHARS = 256;
export const METHOD_MAX_CHARS = 32;
export const HEADER_NAME_MAX_CHARS = 256;
export const EMAIL_MAX_CHARS = 254;
export const PASSWORD_MIN_CHARS = 12;
export const PASSWORD_MAX_BYTES = 1_024;
export const ACCESS_TOKEN_SECONDS = 15 * 60;
export const RECOVERY_CODE_COUNT = 10;
export const ORGANIZATION_NAME_MAX_CHARS = 100;
export const PROJECT_NAME_MAX_CHARS = 100;
export const TOKEN_NAME_MAX_CHARS = 100;
/** The password of a tunnel (HTTP Basic). */
export const BASIC_AUTH_USERNAME_MAX_CHARS = 64;
export const BASIC_AUTH_PASSWORD_MIN_CHARS = 8;
export const MAINTENANCE_MESSAGE_MAX_CHARS = 500;
export const VISITOR_TOKEN_SUBJECT_MAX_CHARS = 255;
/** A verified domain whose TXT record has been missing for this long is released. */
export const PROOF_MISSING_MAX_MS = 7 * DAY_MS;
export const TOKEN_BANDWIDTH_DEFAULT_MBPS = 100;
export const TOKEN_TUNNELS_DEFAULT = 5;
export const TOKEN_TTL_MAX_HOURS = 366 * 24;
export const MASTER_KEY_TTL_MAX_DAYS = 365;
export const MONTHLY_BUDGET_MAX_USD_CENTS = 1_000_000_000;
/** The window of a tunnel's rate limit. */
export const RATE_WINDOW_MS = MINUTE_MS;
/** When a watcher may try again after it was refused because too many were connected. */
export const WATCHER_RETRY_AFTER_MS = 5_000;

// ── Metrics ──

/** Upper bounds of the latency histogram's buckets; one more bucket counts everything slower. */
export const LATENCY_BOUNDS_MS = [
  5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000,
] as const;

/** How long a tunnel's traffic is stored by the minute and by the hour: somewhat longer than it is shown. */
export const TRAFFIC_MINUTES_KEEP_MS = 2 * DAY_MS;
export const TRAFFIC_HOURS_KEEP_MS = 35 * DAY_MS;
