import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { DepartedVisitors } from "../../../../../durable-objects/tunnel/proxy/departed-visitors.ts";
import { MINUTE_MS } from "../../../../../shared/time.ts";

const PAUSE_MS = 5_000;

/** The keys that the front proxy was asked for, request by request. */
let asked: string[][];
/** Those that it does not know. */
let gone: string[];
let isDown: boolean;
let departed: string[];
let visitors: DepartedVisitors;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  gone = [];
  isDown = false;
  departed = [];
  visitors = new DepartedVisitors({
    fetch(_url: unknown, init: { body?: unknown } = {}) {
      const keys = (init.body as string).split("\n");
      asked.push(keys);
      if (isDown) return Promise.reject(new Error("connection refused"));
      return Promise.resolve(new Response(keys.filter((key) => gone.includes(key)).join("\n")));
    },
  });
});
afterEach(() => void vi.useRealTimers());

const watch = (key: string) => visitors.watch(key, () => departed.push(key));

test("a pause is checked when it begins and then once a minute, all visitors together", async () => {
  const a = watch("a");
  const b = watch("b");
  await vi.advanceTimersByTimeAsync(MINUTE_MS);
  expect(asked).toEqual([["a", "b"]]);
  await vi.advanceTimersByTimeAsync(2 * PAUSE_MS);
  expect(asked).toEqual([
    ["a", "b"],
    ["a", "b"],
  ]);
  b.unwatch();
  a.recordWrite();
  await vi.advanceTimersByTimeAsync(2 * PAUSE_MS);
  expect(asked.slice(2)).toEqual([["a"]]);
  expect(departed).toEqual([]);
  a.unwatch();
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(vi.getTimerCount()).toBe(0);
});

test("a visitor who leaves later in a pause is reported a minute later at most", async () => {
  watch("a");
  await vi.advanceTimersByTimeAsync(2 * PAUSE_MS);
  gone = ["a"];
  await vi.advanceTimersByTimeAsync(MINUTE_MS);
  expect(departed).toEqual(["a"]);
});

test("a visitor who leaves is reported as soon when the clock is set back", async () => {
  gone = ["a"];
  watch("a");
  vi.setSystemTime(Date.now() - 60 * MINUTE_MS);
  await vi.advanceTimersByTimeAsync(2 * PAUSE_MS);
  expect(departed).toEqual(["a"]);
});

test("a visitor who has left is reported once", async () => {
  gone = ["a"];
  const a = watch("a");
  watch("b");
  await vi.advanceTimersByTimeAsync(2 * PAUSE_MS);
  expect(departed).toEqual(["a"]);
  a.recordWrite();
  await vi.advanceTimersByTimeAsync(10 * PAUSE_MS);
  expect(departed).toEqual(["a"]);
});

test("a response without pauses, and one that has ended, are not checked", async () => {
  gone = ["busy", "ended"];
  const busy = watch("busy");
  watch("ended").unwatch();
  for (let i = 0; i < 20; i++) {
    await vi.advanceTimersByTimeAsync(PAUSE_MS / 2);
    busy.recordWrite();
  }
  expect(asked).toEqual([]);
});

test("a front proxy that is being restarted is asked again", async () => {
  gone = ["a"];
  isDown = true;
  watch("a");
  await vi.advanceTimersByTimeAsync(2 * PAUSE_MS);
  isDown = false;
  await vi.advanceTimersByTimeAsync(PAUSE_MS);
  expect(departed).toEqual(["a"]);
});
