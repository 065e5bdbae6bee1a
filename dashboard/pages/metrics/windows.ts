/** The time windows that the user can choose, and the formats of their times. */
import type { MetricWindow } from "../../../protocol/schemas/metrics.ts";
import { DAY_MS } from "../../../shared/time.ts";
import { LOCALE } from "../../ui/text/locale.ts";

export const WINDOW_CHOICES: readonly { value: MetricWindow; label: string }[] = [
  { value: "1h", label: "1 hour" },
  { value: "24h", label: "24 hours" },
  { value: "7d", label: "7 days" },
  { value: "30d", label: "30 days" },
];

const DAY_SECONDS = DAY_MS / 1000;
const DEFAULT_WINDOW: MetricWindow = "24h";

/** @param text the parameter of the page's URL, which can be any text. */
export function parseWindow(text: string | undefined): MetricWindow {
  return WINDOW_CHOICES.find(({ value }) => value === text)?.value ?? DEFAULT_WINDOW;
}

const clock = { hour: "numeric", minute: "2-digit" } as const;
const day = { month: "short", day: "numeric" } as const;

/** The buckets of 30 days are days of UTC. */
export function isInUtc(window: MetricWindow): boolean {
  return window === "30d";
}

/** The format of the labels on the time axis. */
export function createTickFormat(window: MetricWindow): Intl.DateTimeFormat {
  if (window === "1h" || window === "24h") return new Intl.DateTimeFormat(LOCALE, clock);
  return createDateFormat(window, day);
}

/** A day in long windows, whose labels are dates: closer ticks would have the same label. */
export function getMinTickSeconds(window: MetricWindow): number {
  return window === "1h" || window === "24h" ? 0 : DAY_SECONDS;
}

/** The format of the start of a bucket. */
export function createBucketFormat(window: MetricWindow): Intl.DateTimeFormat {
  if (isInUtc(window)) return createDateFormat(window, { ...day, weekday: "short" });
  return new Intl.DateTimeFormat(LOCALE, { ...day, ...clock });
}

function createDateFormat(
  window: MetricWindow,
  options: Intl.DateTimeFormatOptions,
): Intl.DateTimeFormat {
  return new Intl.DateTimeFormat(LOCALE, {
    ...options,
    ...(isInUtc(window) && { timeZone: "UTC" }),
  });
}
