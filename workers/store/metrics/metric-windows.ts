/**
 * The time windows of the traffic charts. A window has a fixed number of buckets, which start at multiples of their length
 * in UTC; the last one is the current, unfinished bucket.
 */
import type { Grain } from "../../../durable-objects/tunnel/metrics/traffic.ts";
import type { MetricWindow } from "../../../protocol/schemas/metrics.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../shared/time.ts";

interface WindowShape {
  bucketMs: number;
  buckets: number;
  /** The grain of the rows that the buckets are summed from. */
  grain: Grain;
}

export const WINDOWS: Record<MetricWindow, WindowShape> = {
  "1h": { bucketMs: MINUTE_MS, buckets: 60, grain: "minute" },
  "24h": { bucketMs: 15 * MINUTE_MS, buckets: 96, grain: "minute" },
  "7d": { bucketMs: HOUR_MS, buckets: 168, grain: "hour" },
  "30d": { bucketMs: DAY_MS, buckets: 30, grain: "hour" },
};

export interface Span {
  fromMs: number;
  /** The end of the last bucket, in the future. */
  untilMs: number;
  bucketMs: number;
  grain: Grain;
}

export function getSpan(window: MetricWindow, nowMs: number): Span {
  const { bucketMs, buckets, grain } = WINDOWS[window];
  const untilMs = (Math.floor(nowMs / bucketMs) + 1) * bucketMs;
  return { fromMs: untilMs - buckets * bucketMs, untilMs, bucketMs, grain };
}

interface Point {
  timestamp: string;
  value: number;
}

/** @param values by the start of their bucket in ms since the epoch; a missing bucket is zero. */
export function toSeries(
  { fromMs, untilMs, bucketMs }: Span,
  values: Map<number, number>,
): Point[] {
  const points: Point[] = [];
  for (let atMs = fromMs; atMs < untilMs; atMs += bucketMs) {
    points.push({ timestamp: new Date(atMs).toISOString(), value: values.get(atMs) ?? 0 });
  }
  return points;
}
