/** How fast frames of WebSockets pass. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { FRAMES_BURST_MS, FRAMES_PER_SECOND } from "../../../../../self-host/front-proxy/limits.ts";
import {
  FramePace,
  OWN_FRAMES,
} from "../../../../../self-host/front-proxy/websockets/frame-pace.ts";

const BURST = (FRAMES_PER_SECOND * FRAMES_BURST_MS) / 1_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Takes as long as it may. */
function createTaker(pace: FramePace, source: string) {
  const taker = { frames: 0, allowance: pace.createAllowance(source, () => take()) };
  const take = () => {
    do taker.frames += 1;
    while (taker.allowance.take());
  };
  take();
  return taker;
}

test("all connections of one source share the rate, and another source has its own", () => {
  const pace = new FramePace();
  const takers = Array.from({ length: 4 }, () => createTaker(pace, "attacker"));
  const other = createTaker(pace, "other");
  expect(other.frames).toBe(BURST + OWN_FRAMES.burst);
  expect(other.allowance.isUsedUp).toBe(true);
  vi.advanceTimersByTime(10_000);
  const frames = takers.map((taker) => taker.frames);
  const share = (FRAMES_PER_SECOND * 10) / takers.length;
  for (const count of frames) {
    expect(count).toBeGreaterThan(share * 0.9);
    expect(count).toBeLessThan(share * 1.1);
  }
  for (const { allowance } of [...takers, other]) allowance.end();
  expect(vi.getTimerCount()).toBe(0);
});

test("a connection that has left its source to others leaves them its share", () => {
  const pace = new FramePace();
  const [first, second] = [createTaker(pace, "source"), createTaker(pace, "source")];
  first.allowance.end();
  const before = second.frames;
  vi.advanceTimersByTime(10_000);
  expect(second.frames - before).toBeGreaterThan(FRAMES_PER_SECOND * 10 * 0.9);
  second.allowance.end();
});

test("a connection that sends little does not wait for others of its source", () => {
  const pace = new FramePace();
  const flood = createTaker(pace, "source");
  const idle = pace.createAllowance("source", () => undefined);
  for (let second = 0; second < 10; second++) {
    expect(idle.take()).toBe(true);
    vi.advanceTimersByTime(OWN_FRAMES.refillMs);
  }
  expect(flood.allowance.isUsedUp).toBe(true);
  for (const allowance of [flood.allowance, idle]) allowance.end();
});
