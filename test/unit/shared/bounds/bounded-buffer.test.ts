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

test("doubles its memory up to its bound, and frees what it replaces", () => {
  const buffer = new BoundedBuffer(20_000);
  const capacities: number[] = [];
  let before = buffer.bytes;
  for (let n = 0; n < 20_000; n += 1) {
    buffer.append(Uint8Array.of(n % 251));
    if (buffer.bytes.buffer === before.buffer) continue;
    expect(before.buffer.byteLength).toBe(0);
    before = buffer.bytes;
    capacities.push(before.buffer.byteLength);
  }
  expect(capacities).toEqual([4_096, 8_192, 16_384, 20_000]);
  expect(buffer.bytes.every((byte, at) => byte === at % 251)).toBe(true);
  buffer.clear();
  expect([before.buffer.byteLength, buffer.bytes.byteLength]).toEqual([0, 0]);
  expect(buffer.append(new Uint8Array(20_000))).toBe(true);
});
