import { expect, test } from "vitest";
import { findPercentileMs, trimSteps } from "../../../dashboard/pages/metrics/latency.ts";

const steps = (...counts: number[]) =>
  [5, 10, 25, null].map((bound, at) => ({ up_to_ms: bound, requests: counts[at] ?? 0 }));

test("a percentile is the end of the step within which so many responses arrived", () => {
  const counted = steps(50, 45, 4, 1);
  expect([0.5, 0.51, 0.95, 0.99].map((ratio) => findPercentileMs(counted, ratio))).toEqual([
    5, 10, 10, 25,
  ]);
  expect(findPercentileMs(counted, 1)).toBe(null);
});

test("steps without responses are left out at both ends", () => {
  expect(trimSteps(steps(0, 3, 0, 1)).map(({ requests }) => requests)).toEqual([3, 0, 1]);
  expect(trimSteps(steps())).toEqual([]);
});
