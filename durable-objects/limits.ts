/** Bounds that several files of durable-objects/ share, each with its unit in its name. */

/** An exchange that is open for longer is stored while it is open, in a row of its own. */
export const CAPTURE_LONG_MS = 1_000;
/** Recorded of each WebSocket message and of each server-sent event. */
export const FRAME_CAPTURE_MAX_BYTES = 1024;
