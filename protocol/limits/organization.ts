/** Bounds of who is connected and of who watches, in one organization. Units are in the names. */

/** A tunnel that was heard of within this time is not asked again whether its agent is there. */
export const ATTENDANCE_FRESH_MS = 20_000;
/** Tunnels that one list asks: the platform bounds the calls of one event. */
export const ATTENDANCE_ASKED_MAX_TUNNELS = 5_000;
export const ATTENDANCE_ASKED_AT_ONCE = 64;
/** That an agent left is remembered for this long, so that late news of its arrival changes nothing. */
export const ATTENDANCE_LEFT_KEEP_MS = 3600_000;

/** When an agent comes back whose connection somebody ended. */
export const ENDED_RETRY_MIN_MS = 4_500;
export const ENDED_RETRY_MAX_MS = 5_500;

/** Of one organization, each with a connection. */
export const WATCHERS_MAX = 1_000;
/** When a watcher that found no place may ask again. */
export const RECONNECT_WATCHER_MS = 5_000;
/** What all watchers of an organization may have on the way to them, together. */
export const WATCH_WINDOWS_BYTES = 32 * 1024 * 1024;
/** Of that, a watcher's part: sent, and not known to have arrived. */
export const WATCH_WINDOW_MIN_BYTES = 32 * 1024;
export const WATCH_WINDOW_MAX_BYTES = 512 * 1024;
/** A watcher that never answers a sync gets this much at once, and so much a second. */
export const WATCH_UNANSWERED_BURST_BYTES = 256 * 1024;
export const WATCH_UNANSWERED_BYTES_PER_SECOND = 64 * 1024;
/**
 * All that it ever gets where the platform does not say how much of it is still queued: it might read nothing.
 * Then it is let go.
 */
export const WATCH_UNANSWERED_MAX_BYTES = 8 * 1024 * 1024;
/** Syncs that a watcher has yet to answer. */
export const WATCH_SYNCS_MAX = 8;
/** Until a watcher has answered once, it is asked after so many messages. */
export const WATCH_FIRST_SYNC_MESSAGES = 32;
/** A watcher that is behind for longer is let go. */
export const WATCH_BEHIND_MAX_MS = 30_000;
export const WATCH_BEHIND_CHECK_MS = 1_000;
/** A watcher's own messages are short; longer ones are not read. */
export const WATCH_ANSWER_MAX_CHARS = 100;
/** How often rows are asked whether watchers' sessions still live. What ends them tells so at once. */
export const WATCH_SESSION_CHECK_MS = 15 * 60_000;
/** The same, when they could not be asked. */
export const WATCH_SESSION_RETRY_MS = 60_000;
/** How long a watcher's welcome waits until the tunnels know of it. */
export const WATCH_TOLD_MAX_MS = 2_000;
/** How often a tunnel is told that it is watched, if it can't be reached. */
export const WATCH_TOLD_MAX_TRIES = 3;

/** A tunnel that has much to tell gathers it for this long. */
export const NEWS_GATHER_MS = 100;
/** Captures that a tunnel has yet to tell. Beyond it they are counted as missed. */
export const NEWS_WAITING_MAX_CAPTURES = 1_000;
/** When news that could not be told is told again, and how often. */
export const NEWS_RETRY_MS = 1_000;
export const NEWS_MAX_TRIES = 5;
