/** Times relative to now, in whole units. */

/** Formats a duration in the past: `12 s ago`, `3 min ago`. */
export function formatAgo(ms: number): string {
  return `${formatDuration(Math.max(0, Math.round(ms / 1000)))} ago`;
}

/** Formats the time until an expiry: `in 5 h`, `never`, `expired`. @param expiresAt RFC 3339; null: never. */
export function formatExpiry(expiresAt: string | null, nowMs: number): string {
  if (expiresAt === null) return "never";
  const seconds = Math.round((Date.parse(expiresAt) - nowMs) / 1000);
  return seconds <= 0 ? "expired" : `in ${formatDuration(seconds)}`;
}

/** The same for what has not expired: this machine's clock may be ahead of the server's. */
export function formatComingExpiry(expiresAt: string, nowMs: number): string {
  const text = formatExpiry(expiresAt, nowMs);
  return text === "expired" ? `at ${expiresAt}` : text;
}

const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;

/** A larger unit is used from two of it on: `119 s`, then `2 min`; `119 min`, then `2 h`. */
function formatDuration(seconds: number): string {
  if (seconds < 2 * MINUTE_S) return `${seconds} s`;
  const minutes = Math.round(seconds / MINUTE_S);
  if (minutes * MINUTE_S < 2 * HOUR_S) return `${minutes} min`;
  const hours = Math.round(seconds / HOUR_S);
  if (hours * HOUR_S < 2 * DAY_S) return `${hours} h`;
  return `${Math.round(seconds / DAY_S)} days`;
}
