/** The turns in which the captures of several objects are read. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  ReadQueue,
  ReadTurns,
  SLICE_INTERVAL_MS,
  TURN_WAIT_MAX_MS,
} from "../../../../../durable-objects/tunnel/captures/reading/read-pace.ts";

beforeEach(() => {
  vi.useFakeTimers({ now: 0 });
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  vi.stubGlobal("scheduler", { wait });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("objects that are read at the same time take turns, and one that is alone hardly waits", () => {
  const turns = new ReadTurns();
  const together = Array.from({ length: 3 }, () => turns.take(1_000));
  expect(together).toEqual([0, SLICE_INTERVAL_MS, 2 * SLICE_INTERVAL_MS]);
  const laterMs = 1_000 + 10 * SLICE_INTERVAL_MS;
  expect([turns.take(laterMs), turns.take(laterMs + SLICE_INTERVAL_MS)]).toEqual([0, 0]);
});

test("an object waits for a bounded time, also after the clock was set back", () => {
  const turns = new ReadTurns();
  const count = TURN_WAIT_MAX_MS / SLICE_INTERVAL_MS;
  for (let n = 0; n <= 2 * count; n += 1)
    expect(turns.take(5_000)).toBeLessThanOrEqual(TURN_WAIT_MAX_MS);
  expect(turns.take(0)).toBe(TURN_WAIT_MAX_MS);
  expect(turns.take(2 * TURN_WAIT_MAX_MS + SLICE_INTERVAL_MS)).toBe(0);
});

test("many reads of one object share its turns, so that a read of another one hardly waits for them", async () => {
  const turns = new ReadTurns();
  const [busy, other] = [new ReadQueue(turns), new ReadQueue(turns)];
  const waitForTurns = async (queue: ReadQueue): Promise<number> => {
    for (let n = 0; n < 3; n += 1) await queue.waitForTurn();
    return Date.now();
  };
  const many = Promise.all(Array.from({ length: 200 }, () => waitForTurns(busy)));
  const one = waitForTurns(other);
  await vi.runAllTimersAsync();
  expect(await one).toBeLessThanOrEqual(6 * SLICE_INTERVAL_MS);
  expect(Math.max(...(await many))).toBe(602 * SLICE_INTERVAL_MS);
});
