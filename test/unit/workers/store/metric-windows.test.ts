import { describe, expect, test } from "vitest";
import { toSeries, getSpan } from "../../../../workers/store/metrics/metric-windows.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../../shared/time.ts";

const at = (text: string) => Date.parse(text);
const text = (ms: number) => new Date(ms).toISOString();
const formatBounds = (window: "1h" | "24h" | "7d" | "30d", now: string) => {
  const { fromMs, untilMs } = getSpan(window, at(now));
  return [text(fromMs), text(untilMs)];
};

describe("a window", () => {
  test.each([
    ["1h", MINUTE_MS, 60],
    ["24h", 15 * MINUTE_MS, 96],
    ["7d", HOUR_MS, 168],
    ["30d", DAY_MS, 30],
  ] as const)("of %s has steps of %d ms, always %d of them", (window, stepMs, steps) => {
    for (const now of [
      "2026-11-21T00:00:00.000Z",
      "2026-11-20T23:59:59.999Z",
      "2024-02-29T12:34:56.789Z",
    ]) {
      const series = toSeries(getSpan(window, at(now)), new Map());
      expect(series).toHaveLength(steps);
      const timestamps = series.map(({ timestamp }) => at(timestamp));
      expect(timestamps.filter((timestamp) => timestamp % stepMs !== 0)).toEqual([]);
      expect(
        new Set(timestamps.slice(1).map((timestamp, n) => timestamp - timestamps[n]!)),
      ).toEqual(new Set([stepMs]));
      expect(timestamps.at(-1)! <= at(now) && at(now) < timestamps.at(-1)! + stepMs).toBe(true);
    }
  });

  test("ends with the bucket that is running, from its first millisecond on", () => {
    expect(formatBounds("1h", "2026-11-21T12:00:00.000Z")).toEqual([
      "2026-11-21T11:01:00.000Z",
      "2026-11-21T12:01:00.000Z",
    ]);
    expect(formatBounds("1h", "2026-11-21T11:59:59.999Z")).toEqual([
      "2026-11-21T11:00:00.000Z",
      "2026-11-21T12:00:00.000Z",
    ]);
    expect(formatBounds("24h", "2026-11-21T12:14:59.999Z")).toEqual([
      "2026-11-20T12:15:00.000Z",
      "2026-11-21T12:15:00.000Z",
    ]);
    expect(formatBounds("7d", "2026-11-21T12:00:00.000Z")).toEqual([
      "2026-11-14T13:00:00.000Z",
      "2026-11-21T13:00:00.000Z",
    ]);
    expect(formatBounds("30d", "2026-03-01T00:00:00.000Z")).toEqual([
      "2026-01-31T00:00:00.000Z",
      "2026-03-02T00:00:00.000Z",
    ]);
  });

  test("has a value where there is one and zero everywhere else", () => {
    const span = getSpan("1h", at("2026-11-21T12:00:30.000Z"));
    const series = toSeries(span, new Map([[at("2026-11-21T11:30:00.000Z"), 7]]));
    expect(series.filter(({ value }) => value !== 0)).toEqual([
      { timestamp: "2026-11-21T11:30:00.000Z", value: 7 },
    ]);
  });
});
