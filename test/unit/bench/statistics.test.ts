import { expect, test } from "vitest";
import { median, percentile, summarizeLatencies } from "../../../bench/statistics.ts";

const HUNDRED = Array.from({ length: 100 }, (_, n) => 100 - n);

test("a percentile is the nearest rank", () => {
  expect([0.5, 0.9, 0.99, 0.999, 1].map((part) => percentile(HUNDRED, part))).toEqual([
    50, 90, 99, 100, 100,
  ]);
  expect(percentile(HUNDRED, 0.07)).toBe(7);
  expect(percentile([], 0.5)).toBeNaN();
});

test("a summary of response times has the same percentiles", () => {
  const summary = { p50: 50, p90: 90, p99: 99, p999: 100, max: 100 };
  expect(summarizeLatencies(HUNDRED)).toEqual(summary);
});

test("the median of an even number of values is between the two in the middle", () => {
  expect([median([3, 1, 2]), median([4, 1, 3, 2]), median([])]).toEqual([2, 2.5, NaN]);
});
