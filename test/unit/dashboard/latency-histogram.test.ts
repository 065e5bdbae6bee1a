/** The histogram of latencies on the page of metrics. */
import { expect, test } from "vitest";
import {
  findPercentileMs,
  trimBuckets,
} from "../../../dashboard/pages/metrics/latency-histogram.ts";

const buckets = (...counts: number[]) =>
  [5, 10, 25, null].map((bound, at) => ({ up_to_ms: bound, requests: counts[at] ?? 0 }));

test("a percentile is the upper bound of the bucket that contains it", () => {
  const counted = buckets(50, 45, 4, 1);
  expect([0.5, 0.51, 0.95, 0.99].map((ratio) => findPercentileMs(counted, ratio))).toEqual([
    5, 10, 10, 25,
  ]);
  expect(findPercentileMs(counted, 1)).toBe(null);
});

test("empty buckets are left out at both ends", () => {
  expect(trimBuckets(buckets(0, 3, 0, 1)).map(({ requests }) => requests)).toEqual([3, 0, 1]);
  expect(trimBuckets(buckets())).toEqual([]);
});
