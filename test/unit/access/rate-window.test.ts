import { describe, expect, test } from "vitest";
import {
  RateWindow,
  type SavedPart,
  RATE_WINDOW_MAX_ADDRESSES,
} from "../../../access/rate-window.ts";
import { RATE_WINDOW_MS } from "../../../protocol/limits.ts";

const MINUTE = 1_000 * RATE_WINDOW_MS;

/** How many of a number of requests pass. */
function countPassing(
  window: RateWindow,
  requests: number,
  limit: number,
  at: number,
  address = "a",
) {
  const waits = Array.from({ length: requests }, () => window.take(address, limit, at));
  return waits.filter((waitMs) => waitMs === 0).length;
}

describe("a minute", () => {
  test("admits as many requests as the limit, at any time in the minute", () => {
    const window = new RateWindow([]);
    expect(countPassing(window, 10, 5, MINUTE)).toBe(5);
    expect(countPassing(window, 10, 5, MINUTE + RATE_WINDOW_MS - 1)).toBe(0);
    expect(countPassing(window, 10, 5, MINUTE + RATE_WINDOW_MS)).toBe(5);
  });

  test("reports when the next minute begins", () => {
    const window = new RateWindow([]);
    expect(window.take(null, 1, MINUTE + 20_000)).toBe(0);
    expect(window.take(null, 1, MINUTE + 20_001)).toBe(39_999);
  });

  test("counts each address separately, or all together", () => {
    const window = new RateWindow([]);
    expect(countPassing(window, 3, 2, MINUTE, "a")).toBe(2);
    expect(countPassing(window, 3, 2, MINUTE, "b")).toBe(2);
    const together = Array.from({ length: 3 }, () => window.take(null, 2, MINUTE));
    expect(together.filter((waitMs) => waitMs === 0)).toHaveLength(2);
  });

  test("counts all addresses of an IPv6 subscriber together", () => {
    const window = new RateWindow([]);
    expect(countPassing(window, 2, 2, MINUTE, "2001:db8::1")).toBe(2);
    expect(countPassing(window, 2, 2, MINUTE, "2001:db8::2")).toBe(0);
    expect(countPassing(window, 2, 2, MINUTE, "2001:db8:0:1::1")).toBe(2);
  });

  test("keeps its count when the limit changes", () => {
    const window = new RateWindow([]);
    countPassing(window, 5, 5, MINUTE);
    expect(countPassing(window, 5, 8, MINUTE)).toBe(3);
    expect(countPassing(window, 5, 2, MINUTE)).toBe(0);
  });

  test("counts a bounded number of addresses separately; further ones share one count", () => {
    const window = new RateWindow([]);
    for (let n = 0; n < RATE_WINDOW_MAX_ADDRESSES; n++) window.take(`a${n}`, 1, MINUTE);
    expect(window.take("new", 1, MINUTE)).toBe(0);
    expect(window.take("newer", 1, MINUTE)).toBeGreaterThan(0);
    expect(window.take("a7", 2, MINUTE)).toBe(0);
  });
});

describe("a saved count", () => {
  const saved = new Map<number, SavedPart>();
  const save = (window: RateWindow) => {
    for (const [number, part] of window.takeChanges()) saved.set(number, part);
  };

  test("continues after it was restored, however often it was saved", () => {
    const window = new RateWindow([]);
    for (let n = 0; n < 100; n++) window.take(`a${n}`, 3, MINUTE);
    save(window);
    for (let n = 0; n < 50; n++) window.take(`a${n}`, 3, MINUTE);
    save(window);
    expect(window.takeChanges().size).toBe(0);

    const next = new RateWindow(saved.values());
    expect(countPassing(next, 3, 3, MINUTE, "a0")).toBe(1);
    expect(countPassing(next, 3, 3, MINUTE, "a99")).toBe(2);
    expect(countPassing(next, 4, 3, MINUTE, "new")).toBe(3);
  });

  test("does not affect the next minute, even when parts of both are saved", () => {
    const window = new RateWindow(saved.values());
    window.take("a0", 3, MINUTE + RATE_WINDOW_MS);
    save(window);
    const next = new RateWindow(saved.values());
    expect(countPassing(next, 5, 3, MINUTE + RATE_WINDOW_MS, "a0")).toBe(2);
    expect(countPassing(next, 5, 3, MINUTE + RATE_WINDOW_MS, "a99")).toBe(3);
  });
});
