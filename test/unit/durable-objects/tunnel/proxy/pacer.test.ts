import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  PacedQueue,
  Pacer,
  PACE_BURST_MS,
} from "../../../../../durable-objects/tunnel/proxy/pacer.ts";

const MEGABIT = 125_000;
const FRAME = 64 * 1024;
const NOW = Date.UTC(2026, 0, 1);

/** How many bytes pass within a time, when a next frame is always ready. */
function passedWithin(ms: number, pacer: Pacer, frame = FRAME): number {
  let nowMs = NOW;
  for (let passed = 0; ; passed += frame) {
    nowMs += pacer.reserve(frame, nowMs);
    if (nowMs - NOW >= ms) return passed;
  }
}

describe("a pacer", () => {
  test.each([1, 8, 100, 1_000])(
    "lets %d Mbit/s pass, within ten percent over ten seconds",
    (rate) => {
      const passed = passedWithin(10_000, new Pacer(rate));
      expect(passed / (10 * rate * MEGABIT)).toBeGreaterThan(0.9);
      expect(passed / (10 * rate * MEGABIT)).toBeLessThan(1.1);
    },
  );

  test("does not delay traffic below the rate", () => {
    const pacer = new Pacer(8);
    for (let at = 0; at < 10_000; at += 100) {
      expect(pacer.reserve(0.099 * 8 * MEGABIT, NOW + at)).toBe(0);
    }
  });

  test("allows a burst of only a fraction of a second", () => {
    const pacer = new Pacer(8);
    pacer.reserve(1, NOW - 3600_000);
    const atOnce = passedWithin(1, pacer);
    expect(atOnce).toBeLessThanOrEqual((PACE_BURST_MS / 1000) * 8 * MEGABIT + FRAME);
  });

  test("compensates for late timers", () => {
    const pacer = new Pacer(8);
    let passed = 0;
    for (let nowMs = NOW; nowMs < NOW + 10_000; passed += FRAME) {
      const waitMs = pacer.reserve(FRAME, nowMs);
      if (waitMs > 0) nowMs += waitMs + 15;
    }
    expect(passed / (10 * 8 * MEGABIT)).toBeGreaterThan(0.9);
  });

  test("does not wait until the clock is as late as before, after it was set back", () => {
    const pacer = new Pacer(8);
    const hourAgo = NOW - 3600_000;
    expect(pacer.reserve(8 * MEGABIT, NOW)).toBe(0);
    const waitMs = 1_000 - PACE_BURST_MS;
    expect(pacer.reserve(FRAME, hourAgo)).toBe(waitMs);
    expect(pacer.reserve(1, hourAgo + 2_000)).toBe(0);
  });
});

describe("queues of one pacer", () => {
  beforeEach(() => void vi.useFakeTimers({ now: NOW }));
  afterEach(() => void vi.useRealTimers());

  test("pass bytes at once that need not wait", () => {
    const passed: string[] = [];
    const queue = new PacedQueue(new Pacer(8));
    queue.push(1_000, () => passed.push("small"));
    queue.push(0, () => passed.push("end"));
    expect(passed).toEqual(["small", "end"]);
  });

  test("keep their order, with the end after all waiting bytes", async () => {
    const passed: number[] = [];
    const queue = new PacedQueue(new Pacer(1));
    for (let n = 0; n < 10; n++) queue.push(FRAME, () => passed.push(n));
    queue.push(0, () => passed.push(10));
    expect(passed.length).toBeLessThan(3);
    await vi.runAllTimersAsync();
    expect(passed).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    expect(Date.now() - NOW).toBeGreaterThan((9 * FRAME) / (MEGABIT / 1000) - PACE_BURST_MS - 10);
  });

  test("take turns: a small queue does not wait for the whole of another", async () => {
    const pacer = new Pacer(8);
    const [large, small] = [new PacedQueue(pacer), new PacedQueue(pacer)];
    for (let n = 0; n < 100; n++) large.push(FRAME, () => undefined);
    let passedAtMs = 0;
    small.push(1_000, () => (passedAtMs = Date.now()));
    await vi.runAllTimersAsync();
    expect(passedAtMs - NOW).toBeLessThan((4 * FRAME) / (8 * (MEGABIT / 1000)));
  });

  test("drop their waiting parts when they are cleared", async () => {
    const queue = new PacedQueue(new Pacer(1));
    const passed: number[] = [];
    for (let n = 0; n < 10; n++) queue.push(FRAME, () => passed.push(n));
    const before = passed.length;
    queue.clear();
    await vi.runAllTimersAsync();
    expect(passed).toHaveLength(before);
    expect(vi.getTimerCount()).toBe(0);
  });
});
