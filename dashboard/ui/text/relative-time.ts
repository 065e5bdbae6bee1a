/** How long ago a point in time is, or how soon. */
import { LOCALE } from "./locale.ts";

/** Each unit is used below this number of it. */
const UNITS: [unit: Intl.RelativeTimeFormatUnit, seconds: number, max: number][] = [
  ["second", 1, 60],
  ["minute", 60, 60],
  ["hour", 3_600, 24],
  ["day", 86_400, 120],
  ["month", 2_592_000, 12],
  ["year", 31_536_000, Infinity],
];
const NOW_MS = 10_000;

const relative = new Intl.RelativeTimeFormat(LOCALE, { numeric: "auto" });

/** `5 minutes ago`, `in 90 days`, rounded to a whole number of the unit. */
export function formatRelativeTime(timestampMs: number, nowMs: number): string {
  const differenceMs = timestampMs - nowMs;
  if (Math.abs(differenceMs) < NOW_MS) return relative.format(0, "second");
  const round = (seconds: number) => Math.round(differenceMs / 1000 / seconds);
  const [unit, seconds] = UNITS.find(([, length, max]) => Math.abs(round(length)) < max)!;
  return relative.format(round(seconds), unit);
}
