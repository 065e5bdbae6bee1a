/** Formats a duration in the past, in whole units: `12 s ago`, `3 min ago`. */
export function formatAgo(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s ago`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.round(seconds / 3600)} h ago`;
  return `${Math.round(seconds / 86_400)} days ago`;
}

/** Formats the time until an expiry, in whole units: `in 5 h`, `never`, `expired`. @param expiresAt RFC 3339. */
export function formatExpiry(expiresAt: string | null, nowMs: number): string {
  if (expiresAt === null) return "never";
  const seconds = Math.round((Date.parse(expiresAt) - nowMs) / 1000);
  if (seconds <= 0) return "expired";
  if (seconds < 120) return `in ${seconds} s`;
  if (seconds < 7200) return `in ${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3600) return `in ${Math.round(seconds / 3600)} h`;
  return `in ${Math.round(seconds / 86_400)} days`;
}
