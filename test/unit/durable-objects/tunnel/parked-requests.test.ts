import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { LastAgent } from "../../../../durable-objects/tunnel/agents/last-agent.ts";
import {
  ParkedRequests,
  getGracePeriodLeftMs,
  GRACE_PERIOD_MS,
  PARKED_REQUESTS_MAX,
} from "../../../../durable-objects/tunnel/agents/parked-requests.ts";

const ADDRESS = "198.51.100.1";

describe("the grace period", () => {
  test("is zero if no agent is expected", () => {
    expect(getGracePeriodLeftMs(undefined, 5)).toBe(0);
  });

  test("starts when the agent was lost", () => {
    expect(getGracePeriodLeftMs(1_000, 1_000)).toBe(GRACE_PERIOD_MS);
    expect(getGracePeriodLeftMs(1_000, 4_000)).toBe(GRACE_PERIOD_MS - 3_000);
    expect(getGracePeriodLeftMs(1_000, 1_000 + GRACE_PERIOD_MS)).toBe(0);
    expect(getGracePeriodLeftMs(1_000, 1e9)).toBe(0);
    // The clock was set back.
    expect(getGracePeriodLeftMs(1e9, 1_000)).toBe(GRACE_PERIOD_MS);
  });
});

test("a stop of the server prolongs the wait only for an agent that visitors still waited for", () => {
  const getStartAfter = (stoppingSinceMs: number) => {
    const stored = new Map<string, unknown>();
    const kv = {
      get: (key: string) => stored.get(key),
      put: (key: string, value: unknown) => void stored.set(key, value),
      delete: (key: string) => stored.delete(key),
    };
    const agent = new LastAgent(kv as never);
    agent.recordDisconnected(true, 1_000);
    agent.recordServerStop(stoppingSinceMs);
    return agent.getGraceStart(1e9);
  };
  expect(getStartAfter(1_000 + GRACE_PERIOD_MS - 1)).toBe(1e9);
  expect(getStartAfter(1_000 + GRACE_PERIOD_MS)).toBe(1_000);
});

describe("parked requests", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** @returns whether each request has stopped waiting. */
  function observed(waits: Promise<void>[]): () => Promise<boolean[]> {
    const hasEnded = waits.map(() => false);
    waits.forEach((wait, i) => void wait.then(() => (hasEnded[i] = true)));
    return async () => {
      await vi.advanceTimersByTimeAsync(0);
      return hasEnded;
    };
  }

  test("all continue when they are released", async () => {
    const setTimer = vi.spyOn(globalThis, "setTimeout");
    const clearTimer = vi.spyOn(globalThis, "clearTimeout");
    const parking = new ParkedRequests();
    const hasEnded = observed([parking.wait(ADDRESS, 1_000), parking.wait(ADDRESS, 1_000)]);
    const timers = setTimer.mock.results.map(({ value }) => value as unknown);
    expect(timers).toHaveLength(2);
    expect(await hasEnded()).toEqual([false, false]);
    parking.release();
    expect(await hasEnded()).toEqual([true, true]);
    expect(parking.size).toBe(0);
    expect(clearTimer.mock.calls.flat()).toEqual(expect.arrayContaining(timers));
    vi.restoreAllMocks();
  });

  test("wait no longer than their maximum", async () => {
    const parking = new ParkedRequests();
    const hasEnded = observed([parking.wait(ADDRESS, 1_000), parking.wait(ADDRESS, 0)]);
    expect(parking.size).toBe(1);
    expect(await hasEnded()).toEqual([false, true]);
    await vi.advanceTimersByTimeAsync(999);
    expect(await hasEnded()).toEqual([false, true]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await hasEnded()).toEqual([true, true]);
    expect(parking.size).toBe(0);
  });

  test("are bounded: one more does not wait", async () => {
    const parking = new ParkedRequests();
    const waits = Array.from({ length: PARKED_REQUESTS_MAX - 1 }, (_, i) =>
      parking.wait(`192.0.2.${i}`, 1_000),
    );
    const hasEnded = observed([...waits, parking.wait(ADDRESS, 1_000)]);
    expect((await hasEnded()).filter(Boolean)).toHaveLength(1);
    expect((await hasEnded()).at(-1)).toBe(true);
    parking.release();
    expect((await hasEnded()).every(Boolean)).toBe(true);
  });

  test("of one source take at most half of the places, so that those of another can wait", async () => {
    const parking = new ParkedRequests();
    const waits = Array.from({ length: PARKED_REQUESTS_MAX }, () => parking.wait(ADDRESS, 1_000));
    const hasEnded = observed([...waits, parking.wait("2001:db8::1", 1_000)]);
    expect((await hasEnded()).filter(Boolean)).toHaveLength(PARKED_REQUESTS_MAX / 2);
    expect((await hasEnded()).at(-1)).toBe(false);
    parking.release();
  });

  test("end at once when the visitor disconnects, and leave their place to another", async () => {
    const parking = new ParkedRequests();
    const visitor = new AbortController();
    const hasEnded = observed([parking.wait(ADDRESS, 1_000, visitor.signal)]);
    visitor.abort();
    expect(await hasEnded()).toEqual([true]);
    expect(vi.getTimerCount()).toBe(0);
    const late = observed([parking.wait(ADDRESS, 1_000, visitor.signal)]);
    expect(parking.size).toBe(0);
    expect(await late()).toEqual([true]);
    const fill = () =>
      Array.from({ length: PARKED_REQUESTS_MAX / 2 }, () => parking.wait(ADDRESS, 1_000));
    for (let round = 0; round < 3; round += 1) {
      const waits = fill();
      expect(parking.size).toBe(PARKED_REQUESTS_MAX / 2);
      parking.release();
      await Promise.all(waits);
    }
  });
});
