/** Points in time: relative to now, and exact on hover. */
import { useSyncExternalStore } from "react";

const UNITS: [unit: Intl.RelativeTimeFormatUnit, seconds: number][] = [
  ["year", 31_536_000],
  ["month", 2_592_000],
  ["week", 604_800],
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];
const TICK_MS = 10_000;

const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const medium = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });

/** One timer updates all times of the page. */
const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function subscribe(notify: () => void): () => void {
  listeners.add(notify);
  if (timer === undefined) {
    // Nothing has shown a time for a while: React compares the value again after it has subscribed.
    now = Date.now();
    timer = setInterval(() => {
      now = Date.now();
      for (const each of listeners) each();
    }, TICK_MS);
  }
  return () => {
    listeners.delete(notify);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

function formatRelativeTime(timestampMs: number, nowMs: number): string {
  const seconds = Math.round((timestampMs - nowMs) / 1000);
  if (Math.abs(seconds) * 1000 < TICK_MS) return relative.format(0, "second");
  const [unit, length] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
  return relative.format(Math.trunc(seconds / length), unit);
}

/** The current time in ms since the epoch, for what depends on how long ago something was. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

/** `5 minutes ago`. */
export function RelativeTime({ timestamp }: { timestamp: string }) {
  const at = new Date(timestamp);
  const nowMs = useNow();
  return (
    <time dateTime={timestamp} title={exact.format(at)}>
      {formatRelativeTime(at.getTime(), nowMs)}
    </time>
  );
}

/** `23 Nov 2026, 07:15`, in the locale and time zone of the user. */
export function ExactTime({ timestamp }: { timestamp: string }) {
  const at = new Date(timestamp);
  return (
    <time dateTime={timestamp} title={exact.format(at)}>
      {medium.format(at)}
    </time>
  );
}
