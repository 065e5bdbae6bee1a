/** `--since`: how old the deliveries may be that are forwarded, or the captured requests that are listed. */
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../shared/time.ts";

const UNIT_MS = { s: 1_000, m: MINUTE_MS, h: HOUR_MS, d: DAY_MS } as const;

/**
 * Accepts `all`, `90s`, `30m`, `2h`, `7d`, or a timestamp in RFC 3339.
 * @returns `all` or the timestamp; null for anything else.
 */
export function parseSince(text: string, nowMs: number): string | null {
  if (text === "all") return text;
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  if (count !== undefined) {
    const ageMs = Number(count) * UNIT_MS[unit as keyof typeof UNIT_MS];
    // RFC 3339 has no years before 0, and no request is that old.
    return new Date(Math.max(nowMs - ageMs, 0)).toISOString();
  }
  const isTimestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(text);
  const ms = Date.parse(text);
  return isTimestamp && !Number.isNaN(ms) ? new Date(ms).toISOString() : null;
}
