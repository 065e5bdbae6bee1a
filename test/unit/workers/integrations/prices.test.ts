import { expect, test } from "vitest";
import { computeUsdCents } from "../../../../workers/store/billing/plans.ts";

test.each([
  [0, 0, 0],
  [1e9, 0, 10],
  [0, 1e6, 50],
  [1e9, 1e6, 60],
  // Fractions of a cent are not charged.
  [99_999_999, 0, 0],
  [100_000_000, 0, 1],
  [50_000_000, 10_000, 1],
  [1e15, 0, 10_000_000],
])("%d bytes and %d requests cost %d cents", (bytes, requests, cents) => {
  expect(computeUsdCents({ bytes, requests })).toBe(cents);
});
