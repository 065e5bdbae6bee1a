/** Points in time: relative to now, and exact on hover. */
import { useSyncExternalStore } from "react";
import { LOCALE } from "./text/locale.ts";
import { formatRelativeTime } from "./text/relative-time.ts";

const TICK_MS = 10_000;

const exact = new Intl.DateTimeFormat(LOCALE, { dateStyle: "full", timeStyle: "long" });
const medium = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeStyle: "short" });
const precise = new Intl.DateTimeFormat(LOCALE, { dateStyle: "medium", timeStyle: "long" });

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

/**
 * `Nov 23, 2026, 7:15 AM`, in the time zone of the user and with their clock.
 * @param isPrecise with the seconds and the name of the time zone.
 */
export function ExactTime({ timestamp, isPrecise }: { timestamp: string; isPrecise?: boolean }) {
  const at = new Date(timestamp);
  return (
    <time dateTime={timestamp} title={exact.format(at)}>
      {(isPrecise ? precise : medium).format(at)}
    </time>
  );
}
