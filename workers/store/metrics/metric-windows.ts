/**
 * The spans of time in which traffic is shown: always as many buckets, each at a multiple of its length in UTC,
 * the last of them the one that is running.
 */
import type { Grain } from "../../../durable-objects/tunnel/metrics/traffic.ts";
import type { MetricWindow } from "../../../protocol/schemas/metrics.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../shared/time.ts";

interface WindowShape {
  bucketMs: number;
  buckets: number;
  /** Of the rows that it is made of. */
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
  /** When the last bucket ends: not before now. */
  untilMs: number;
  bucketMs: number;
  grain: Grain;
}

export function getSpan(window: MetricWindow, nowMs: number): Span {
  const { bucketMs, buckets, grain } = WINDOWS[window];
  const untilMs = (Math.floor(nowMs / bucketMs) + 1) * bucketMs;
  return { fromMs: untilMs - buckets * bucketMs, untilMs, bucketMs, grain };
}

export interface Point {
  timestamp: string;
  value: number;
}

/** @param values by the start of their bucket in ms since the epoch; what is not among them is zero. */
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
