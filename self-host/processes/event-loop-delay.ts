/** How late timers of this process fire: the time for which other code has kept it from answering. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { MetricFamily } from "../../shared/metrics/exposition.ts";

const RESOLUTION_MS = 20;
/** A scrape reports the last complete window, so that it changes nothing for other readers. */
const WINDOW_MS = 15_000;
const NANOSECONDS = 1e9;

/** @param process the value of the label. */
export function watchEventLoopDelay(process: string): () => MetricFamily[] {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  let last = { p99: 0, max: 0 };
  setInterval(() => {
    last = { p99: histogram.percentile(99), max: histogram.max };
    histogram.reset();
  }, WINDOW_MS).unref();
  // A timer is late by its own resolution, which delays nothing.
  const toSeconds = (ns: number) => Math.max(0, ns / NANOSECONDS - RESOLUTION_MS / 1000);
  return () => [
    {
      name: "underpass_server_event_loop_delay_p99_seconds",
      help: "Delay of the event loop that 99 of 100 samples of the last 15 seconds did not exceed.",
      type: "gauge",
      samples: [{ labels: { process }, value: toSeconds(last.p99) }],
    },
    {
      name: "underpass_server_event_loop_delay_max_seconds",
      help: "The longest delay of the event loop in the last 15 seconds.",
      type: "gauge",
      samples: [{ labels: { process }, value: toSeconds(last.max) }],
    },
  ];
}
