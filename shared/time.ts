/** Units of time, and comparisons with a clock that may be set back. All times are in milliseconds. */
export const SECOND_MS = 1_000;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;

/**
 * Whether a time that was at most `maxMs` ahead when it was stored is still ahead. One that is further ahead was stored before the
 * clock was set back, and counts as past.
 */
export function isAhead(atMs: number, maxMs: number, nowMs: number): boolean {
  const leftMs = atMs - nowMs;
  return leftMs > 0 && leftMs <= maxMs;
}

/** Whether less than `maxMs` has passed since a time. A time ahead was stored before the clock was set back, and counts as long past. */
export function isRecent(atMs: number, maxMs: number, nowMs: number): boolean {
  const passedMs = nowMs - atMs;
  return passedMs >= 0 && passedMs < maxMs;
}
