/** The periods that the page shows, and how their times are written. */
import type { MetricWindow } from "../../../protocol/schemas/metrics.ts";

export const WINDOW_CHOICES: readonly { value: MetricWindow; label: string }[] = [
  { value: "1h", label: "1 hour" },
  { value: "24h", label: "24 hours" },
  { value: "7d", label: "7 days" },
  { value: "30d", label: "30 days" },
];

const DAY_SECONDS = 86_400;
const DEFAULT_WINDOW: MetricWindow = "24h";

/** @param text of the page's URL, which can be anything. */
export function parseWindow(text: string | undefined): MetricWindow {
  return WINDOW_CHOICES.find(({ value }) => value === text)?.value ?? DEFAULT_WINDOW;
}

const clock = { hour: "numeric", minute: "2-digit" } as const;
const day = { month: "short", day: "numeric" } as const;

/** The buckets of 30 days are days of UTC. */
export function isInUtc(window: MetricWindow): boolean {
  return window === "30d";
}

/** At the axis of the chart. */
export function createTickFormat(window: MetricWindow): Intl.DateTimeFormat {
  if (window === "1h" || window === "24h") return new Intl.DateTimeFormat(undefined, clock);
  return createDateFormat(window, day);
}

/** Ticks of long windows are dates. */
export function getMinTickSeconds(window: MetricWindow): number {
  return window === "1h" || window === "24h" ? 0 : DAY_SECONDS;
}

/** The start of a bucket. */
export function createBucketFormat(window: MetricWindow): Intl.DateTimeFormat {
  if (isInUtc(window)) return createDateFormat(window, { ...day, weekday: "short" });
  return new Intl.DateTimeFormat(undefined, { ...day, ...clock });
}

function createDateFormat(
  window: MetricWindow,
  options: Intl.DateTimeFormatOptions,
): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat(undefined, {
    ...options,
    ...(isInUtc(window) && { timeZone: "UTC" }),
  });
}
