import { expect, test } from "vitest";
import { backOff } from "../../../agent/tunnel-connection.ts";
import { RECONNECT_MAX_MS } from "../../../protocol/limits.ts";
import { RECONNECT_MIN_MS } from "../../../agent/tunnel-connection.ts";

test("an agent waits at least half a second, at most five, and longer after more failures", () => {
  const longest = [0, 1, 2, 3, 4, 50, 10_000].map((failures) => backOff(failures, () => 1));
  expect(longest).toEqual([1_000, 2_000, 4_000, 5_000, 5_000, 5_000, 5_000]);
  for (const failures of [0, 3, 10_000]) {
    expect(backOff(failures, () => 0)).toBe(RECONNECT_MIN_MS);
    expect(backOff(failures)).toBeLessThanOrEqual(RECONNECT_MAX_MS);
  }
});

test("a thousand agents that lose one server reconnect spread over the whole interval", () => {
  const span = RECONNECT_MAX_MS - RECONNECT_MIN_MS;
  const tenths = new Set<number>();
  for (let agent = 0; agent < 1_000; agent += 1)
    tenths.add(Math.floor(((backOff(9) - RECONNECT_MIN_MS) / span) * 10));
  expect(tenths.size).toBe(10);
});
