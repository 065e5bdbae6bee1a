import { expect, test } from "vitest";
import {
  ReadTurns,
  SLICE_INTERVAL_MS,
  TURN_WAIT_MAX_MS,
} from "../../../../../durable-objects/tunnel/captures/reading/read-pace.ts";

test("reads at the same time take turns, and one that is alone hardly waits", () => {
  const turns = new ReadTurns();
  const together = Array.from({ length: 3 }, () => turns.take(1_000));
  expect(together).toEqual([0, SLICE_INTERVAL_MS, 2 * SLICE_INTERVAL_MS]);
  const laterMs = 1_000 + 10 * SLICE_INTERVAL_MS;
  expect([turns.take(laterMs), turns.take(laterMs + SLICE_INTERVAL_MS)]).toEqual([0, 0]);
});

test("a read waits for a bounded time, also after the clock was set back", () => {
  const turns = new ReadTurns();
  const count = TURN_WAIT_MAX_MS / SLICE_INTERVAL_MS;
  for (let n = 0; n <= 2 * count; n += 1)
    expect(turns.take(5_000)).toBeLessThanOrEqual(TURN_WAIT_MAX_MS);
  expect(turns.take(0)).toBe(TURN_WAIT_MAX_MS);
  expect(turns.take(2 * TURN_WAIT_MAX_MS + SLICE_INTERVAL_MS)).toBe(0);
});
