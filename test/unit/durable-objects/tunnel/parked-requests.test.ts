import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  ParkedRequests,
  getGracePeriodLeftMs,
  GRACE_PERIOD_MS,
  PARKED_REQUESTS_MAX,
} from "../../../../durable-objects/tunnel/agents/parked-requests.ts";

describe("the grace period", () => {
  test("is zero if no agent was connected, or if it announced that it goes away", () => {
    expect(getGracePeriodLeftMs(undefined, 5)).toBe(0);
  });

  test("starts when the agent was lost", () => {
    expect(getGracePeriodLeftMs({ goneAtMs: 1_000 }, 1_000)).toBe(GRACE_PERIOD_MS);
    expect(getGracePeriodLeftMs({ goneAtMs: 1_000 }, 4_000)).toBe(GRACE_PERIOD_MS - 3_000);
    expect(getGracePeriodLeftMs({ goneAtMs: 1_000 }, 1_000 + GRACE_PERIOD_MS)).toBe(0);
    expect(getGracePeriodLeftMs({ goneAtMs: 1_000 }, 1e9)).toBe(0);
  });
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
    const parking = new ParkedRequests();
    const hasEnded = observed([parking.wait(1_000), parking.wait(1_000)]);
    expect(await hasEnded()).toEqual([false, false]);
    parking.release();
    expect(await hasEnded()).toEqual([true, true]);
    expect(parking.size).toBe(0);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("wait no longer than their maximum", async () => {
    const parking = new ParkedRequests();
    const hasEnded = observed([parking.wait(1_000), parking.wait(0)]);
    expect(await hasEnded()).toEqual([false, true]);
    await vi.advanceTimersByTimeAsync(999);
    expect(await hasEnded()).toEqual([false, true]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await hasEnded()).toEqual([true, true]);
    expect(parking.size).toBe(0);
  });

  test("are bounded: one more does not wait", async () => {
    const parking = new ParkedRequests();
    const waits = Array.from({ length: PARKED_REQUESTS_MAX }, () => parking.wait(1_000));
    const hasEnded = observed([...waits, parking.wait(1_000)]);
    expect((await hasEnded()).filter(Boolean)).toHaveLength(1);
    expect((await hasEnded()).at(-1)).toBe(true);
    parking.release();
    expect((await hasEnded()).every(Boolean)).toBe(true);
  });
});
