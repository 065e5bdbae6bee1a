/** Bounds that several files of durable-objects/ share, each with its unit in its name. */

/** What is open for longer is written as open, and kept apart from what was over sooner. */
export const CAPTURE_LONG_MS = 1_000;
/** Kept of each WebSocket message and of each server-sent event. */
export const FRAME_CAPTURE_MAX_BYTES = 1024;
