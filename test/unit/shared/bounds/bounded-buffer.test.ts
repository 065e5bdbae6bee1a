import { expect, test } from "vitest";
import { BoundedBuffer } from "../../../../shared/bounds/bounded-buffer.ts";

test("collects chunks up to its bound, and adds nothing of one that does not fit", () => {
  const buffer = new BoundedBuffer(10_000);
  expect(buffer.append(new Uint8Array(6_000).fill(1))).toBe(true);
  expect(buffer.append(new Uint8Array(6_000).fill(2))).toBe(false);
  expect(buffer.append(new Uint8Array(4_000).fill(3))).toBe(true);
  expect(buffer.bytes).toHaveLength(10_000);
  expect([buffer.bytes[5_999], buffer.bytes[6_000]]).toEqual([1, 3]);
});

test("copies the chunks", () => {
  const buffer = new BoundedBuffer(1);
  const chunk = Uint8Array.of(7);
  buffer.append(chunk);
  chunk[0] = 8;
  expect(buffer.bytes).toEqual(Uint8Array.of(7));
});
