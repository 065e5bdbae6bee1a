import { describe, expect, test } from "vitest";
import { z } from "zod";
import {
  toCaptureIdPrefix,
  CaptureIdGenerator,
  getTunnelSuffixOfCapture,
  getTunnelSuffix,
  getCaptureTimeMs,
} from "../../../protocol/captures/id.ts";
import { SHARDS_MAX } from "../../../protocol/limits.ts";

const TUNNEL = "3f0e5a52-6c0a-4f39-9d5e-0123456789ab";
const NOW = Date.UTC(2026, 10, 21, 12);

function idsAt(...times: number[]): string[] {
  const ids = new CaptureIdGenerator(TUNNEL, 0);
  return times.map((at) => ids.next(at));
}

describe("the id of a captured request", () => {
  test("is a UUID of version 7 with the time of the request and the end of the id of its tunnel", () => {
    const [id = ""] = idsAt(NOW);
    expect(z.uuidv7().safeParse(id).success).toBe(true);
    expect(getCaptureTimeMs(id)).toBe(NOW);
    expect(getTunnelSuffixOfCapture(id)).toBe(getTunnelSuffix(TUNNEL));
    expect(getTunnelSuffixOfCapture(id.toUpperCase())).toBe(getTunnelSuffix(TUNNEL));
  });

  test("sorts after all earlier ids: within one millisecond, when the clock goes back, and when the counter overflows", () => {
    const ids = idsAt(NOW, NOW + 5, NOW - 1000, ...Array.from({ length: 9_000 }, () => NOW + 5));
    expect(ids.toSorted()).toEqual(ids);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("sorts between the prefixes of its millisecond and of the next", () => {
    for (const random of [0, 0.999999]) {
      const id = new CaptureIdGenerator(TUNNEL, 0, () => random).next(NOW);
      expect(z.uuidv7().safeParse(id).success).toBe(true);
      expect(toCaptureIdPrefix(NOW) < id && id < toCaptureIdPrefix(NOW + 1)).toBe(true);
    }
  });

  test("differs after a restart of the object within the same millisecond", () => {
    const draw = (random: number) => new CaptureIdGenerator(TUNNEL, 0, () => random).next(NOW);
    expect(draw(0.1)).not.toBe(draw(0.9));
  });

  test("is that of one object only, if several of a tunnel generate one in the same millisecond", () => {
    for (const random of [0, 0.999999]) {
      const ids = Array.from({ length: SHARDS_MAX }, (_, shard) =>
        new CaptureIdGenerator(TUNNEL, shard, () => random).next(NOW),
      );
      expect(new Set(ids).size).toBe(SHARDS_MAX);
      for (const id of ids) expect(z.uuidv7().safeParse(id).success).toBe(true);
    }
  });
});
