/** Machines that wait for their approval, in one isolate. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { waitForDecision } from "../../../../../workers/api/accounts/waiting-polls.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

const { signal } = new AbortController();
const wait = (source: string) =>
  waitForDecision({ deviceId: crypto.randomUUID(), source, waitMs: 1_000, signal }, () =>
    Promise.resolve(undefined),
  );

test("256 machines wait at a time, from however many addresses, and the next one when they have ended", async () => {
  const waiting = Array.from({ length: 256 }, (_, n) => wait(`source ${n}`));
  expect(await wait("another source")).toBe("busy");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set([undefined]));
  const next = wait("another source");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await next).toBeUndefined();
});
