/** Bounds that several files of durable-objects/ share, each with its unit in its name. */
import { DAY_MS, HOUR_MS } from "../shared/time.ts";

/** Recorded of each WebSocket message and of each server-sent event. */
export const ENTRY_CAPTURE_MAX_BYTES = 1024;
/**
 * The object of a tunnel or receiver that has ended is marked as retired for this long, because isolates remember routes
 * and settings for a minute, and a repeated message may arrive late. Then its storage is removed, with the mark.
 */
export const RETIRED_STORAGE_MS = HOUR_MS;
/** How long an undelivered usage count of a relay is stored. */
export const STORED_USAGE_MAX_MS = 7 * DAY_MS;
/** How long isolates remember that a host has no tunnel. */
export const ROUTE_MISS_CACHED_MS = 500;
