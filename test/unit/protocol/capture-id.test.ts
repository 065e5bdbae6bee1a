import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  toCaptureIdPrefix,
  CaptureIds,
  getCaptureKey,
  toCaptureKey,
  getCaptureTimeMs,
} from "../../../protocol/capture-id.ts";

const TUNNEL = "3f0e5a52-6c0a-4f39-9d5e-0123456789ab";
const NOW = Date.UTC(2026, 10, 21, 12);

function idsAt(...times: number[]): string[] {
  const ids = new CaptureIds(TUNNEL);
  return times.map((at) => ids.next(at));
}

describe("the id of a captured request", () => {
  test("is a UUID of version 7 with the time of the request and the key of its tunnel", () => {
    const [id = ""] = idsAt(NOW);
    expect(z.uuidv7().safeParse(id).success).toBe(true);
    expect(getCaptureTimeMs(id)).toBe(NOW);
    expect(getCaptureKey(id)).toBe(toCaptureKey(TUNNEL));
    expect(getCaptureKey(id.toUpperCase())).toBe(toCaptureKey(TUNNEL));
  });

  test("sorts after all earlier ids: within one millisecond, when the clock goes back, and when the counter overflows", () => {
    const ids = idsAt(NOW, NOW + 5, NOW - 1000, ...Array.from({ length: 9_000 }, () => NOW + 5));
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("sorts between the prefixes of its millisecond and of the next", () => {
    for (const random of [0, 0.999999]) {
      const id = new CaptureIds(TUNNEL, () => random).next(NOW);
      expect(z.uuidv7().safeParse(id).success).toBe(true);
      expect(toCaptureIdPrefix(NOW) < id && id < toCaptureIdPrefix(NOW + 1)).toBe(true);
    }
  });

  test("differs after a restart of the object within the same millisecond", () => {
    const draw = (random: number) => new CaptureIds(TUNNEL, () => random).next(NOW);
    expect(draw(0.1)).not.toBe(draw(0.9));
  });
});
