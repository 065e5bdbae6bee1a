/** Every bound of what is kept of visitors' requests, its unit in its name. */

/** Kept of each side of an exchange; what is longer is cut, and says so. */
export const BODY_CAPTURE_MAX_BYTES = 512 * 1024;
/** Bodies of all exchanges of a tunnel that are not written yet. Beyond it they are cut. */
export const CAPTURE_MEMORY_MAX_BYTES = 16 * 1024 * 1024;
/** What a tunnel keeps on disk, everything included; the oldest goes first. */
export const CAPTURES_STORED_MAX_BYTES = 64 * 1024 * 1024;
/** How much may be written before the bound is looked at again. */
export const CAPTURES_CHECK_BYTES = 1024 * 1024;
/** How many a list looks at before whatever else is due has its turn: some 10 ms. */
export const CAPTURES_LOOKED_AT_ONCE = 2_000;
/** How many pages are dropped before whatever else is due has its turn. */
export const CAPTURES_DROPPED_AT_ONCE = 200;
/** How long something recorded may be in memory only. A crash forgets no more than this. */
export const CAPTURE_WRITE_DELAY_MS = 100;
/** Exchanges that are written together at most. */
export const CAPTURE_PAGE_MAX_EXCHANGES = 256;
/** Bodies up to this are written beside their headers, larger ones by themselves. */
export const CAPTURE_INLINE_BODY_MAX_BYTES = 16 * 1024;
/** All of a page beside each other: the platform stores values of 2 MB, and a character can take two bytes. */
export const CAPTURE_PAGE_MAX_BYTES = 512 * 1024;
/** What is open for longer is written as open, and kept apart from what was over sooner. */
export const CAPTURE_LONG_MS = 1_000;
/** Kept of each WebSocket message and of each server-sent event. */
export const FRAME_CAPTURE_MAX_BYTES = 1024;
/** Messages or events that are kept together, and how many such pages an exchange keeps: the newest. */
export const FRAME_PAGE_MAX_FRAMES = 100;
export const FRAME_PAGE_MAX_BYTES = 32 * 1024;
export const FRAME_PAGES_MAX = 100;
/** Where retention is asked after, at least and while anything is kept. */
export const RETENTION_CHECK_MIN_MS = 60_000;
/** Of a tunnel that nobody has said a plan's retention of. */
export const RETENTION_DEFAULT_DAYS = 7;
export const REDACTED_HEADERS_MAX = 100;
/** How long a replay is waited for; what has not ended by then is given up. */
export const REPLAY_MAX_MS = 30_000;
/** The platform stores or deletes no more keys in one call. */
export const STORAGE_BATCH_MAX_KEYS = 128;
