import { expect, test } from "vitest";
import {
  getMsUntilFull,
  takeFromBucket,
  type TokenBucket,
} from "../../../../shared/bounds/token-bucket.ts";

const RULE = { burst: 5, refillMs: 12_000 };

/** `waitMs` of a request at each of these times. */
function waitsAt(times: number[]): number[] {
  let bucket: TokenBucket | undefined;
  return times.map((nowMs) => {
    const result = takeFromBucket(bucket, RULE, nowMs);
    ({ bucket } = result);
    return result.waitMs;
  });
}

test("five requests pass at once, the sixth has to wait for the next token", () => {
  expect(waitsAt([0, 0, 0, 0, 0, 0])).toEqual([0, 0, 0, 0, 0, 12_000]);
});

test("a caller that waits for `waitMs` passes, and one that tries earlier loses nothing", () => {
  expect(waitsAt([0, 0, 0, 0, 0, 1_000, 6_000, 11_999, 12_000])).toEqual([
    0, 0, 0, 0, 0, 11_000, 6_000, 1, 0,
  ]);
});

test("a long pause fills the bucket to its burst and not beyond", () => {
  expect(waitsAt([0, 0, 0, 0, 0, 1e9, 1e9, 1e9, 1e9, 1e9, 1e9]).slice(5)).toEqual([
    0, 0, 0, 0, 0, 12_000,
  ]);
});

test("a clock that went backwards neither fills nor empties it", () => {
  expect(waitsAt([1_000, 0, 0, 0, 0, 0])).toEqual([0, 0, 0, 0, 0, 12_000]);
});

test("`getMsUntilFull` is the time until the bucket is full again", () => {
  const { bucket } = takeFromBucket(undefined, RULE, 0);
  expect(getMsUntilFull(bucket, RULE)).toBe(12_000);
  const later = takeFromBucket(bucket, RULE, getMsUntilFull(bucket, RULE));
  expect(later.bucket).toEqual({ tokens: 4, atMs: 12_000 });
});
