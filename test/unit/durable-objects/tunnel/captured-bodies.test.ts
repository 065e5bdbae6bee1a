import { beforeEach, describe, expect, test } from "vitest";
import {
  BODY_CAPTURE_MAX_BYTES,
  BodyRecorder,
} from "../../../../durable-objects/tunnel/captures/body.ts";
import {
  CaptureMemory,
  SMALL_BODY_MAX_BYTES,
  WRITE_RESERVE_BYTES,
  WRITTEN_BYTES,
} from "../../../../durable-objects/tunnel/captures/memory.ts";

const CHUNK_BYTES = 4 * 1024;

let nowMs = 0;
let memory: CaptureMemory;
beforeEach(() => {
  nowMs = 0;
  memory = new CaptureMemory(2 * BODY_CAPTURE_MAX_BYTES, () => nowMs);
});

function addInChunks(body: BodyRecorder, size: number): void {
  for (let added = 0; added < size; added += CHUNK_BYTES) {
    body.add(new Uint8Array(Math.min(CHUNK_BYTES, size - added)), memory);
  }
}

function write(body: BodyRecorder) {
  body.end();
  memory.release(body.heldBytes);
  const { bytes, isCut } = body.toCapturedBody();
  memory.countWritten(bytes.byteLength);
  return { storedBytes: bytes.byteLength, isCut };
}

/** A body that is written as soon as it has ended. */
function record(size: number, add = addInChunks) {
  const body = new BodyRecorder();
  add(body, size);
  return write(body);
}

const whole = (size: number) => ({ storedBytes: size, isCut: false });
const CUT = { storedBytes: SMALL_BODY_MAX_BYTES, isCut: true };
const LARGE_BURST_BYTES = WRITTEN_BYTES.burst - WRITE_RESERVE_BYTES.largeBody;
const SMALL_BURST_BYTES = WRITTEN_BYTES.burst - WRITE_RESERVE_BYTES.body;
const REFILL_BYTES_PER_SECOND = 1_000 / WRITTEN_BYTES.refillMs;

/** @returns how many bytes were stored until a body of this size was cut. */
function storeUntilCut(size = BODY_CAPTURE_MAX_BYTES): number {
  for (let storedBytes = 0; storedBytes < 2 * WRITTEN_BYTES.burst;) {
    const stored = record(size);
    if (stored.isCut) return storedBytes;
    storedBytes += stored.storedBytes;
  }
  throw new Error("no body is cut");
}

/** @returns how many bytes a second of bodies are stored, when some arrive every tenth of a second. */
function measureRate(size: number, bodies: number): number {
  let storedBytes = 0;
  const seconds = 20;
  for (const end = nowMs + seconds * 1_000; nowMs < end; nowMs += 100) {
    for (let n = 0; n < bodies; n += 1) storedBytes += record(size).storedBytes;
  }
  return storedBytes / seconds;
}

function expectRefillRate(bytesPerSecond: number): void {
  expect(bytesPerSecond / REFILL_BYTES_PER_SECOND).toBeGreaterThan(0.9);
  expect(bytesPerSecond / REFILL_BYTES_PER_SECOND).toBeLessThan(1.02);
}

describe("of bodies", () => {
  test("64 MiB of large ones are stored at once, then two mebibytes a second", () => {
    expect(storeUntilCut()).toBeGreaterThanOrEqual(LARGE_BURST_BYTES);
    expectRefillRate(measureRate(BODY_CAPTURE_MAX_BYTES, 1));
  });

  test("72 MiB of small ones are stored at once, then two mebibytes a second, others are cut", () => {
    const size = SMALL_BODY_MAX_BYTES - 1_024;
    expect(storeUntilCut(size)).toBeGreaterThanOrEqual(SMALL_BURST_BYTES - 2 * size);
    expect(record(size)).toEqual({ storedBytes: 0, isCut: true });
    expectRefillRate(measureRate(size, 100));
    expect(memory.heldBytes).toBe(0);
  });

  test("empty ones are never cut", () => {
    storeUntilCut(SMALL_BODY_MAX_BYTES);
    expect(record(0)).toEqual(whole(0));
  });

  test.each([
    ["in chunks", addInChunks],
    ["at once", (body: BodyRecorder, size: number) => body.add(new Uint8Array(size), memory)],
  ])(
    "beyond that only the beginning of large ones is stored, and marked as cut, when they arrive %s",
    (_, add) => {
      storeUntilCut();
      expect(record(BODY_CAPTURE_MAX_BYTES, add)).toEqual(CUT);
      expect(record(SMALL_BODY_MAX_BYTES + 1, add)).toEqual(CUT);
      expect(record(SMALL_BODY_MAX_BYTES, add)).toEqual(whole(SMALL_BODY_MAX_BYTES));
      nowMs += 1_000;
      expect(record(BODY_CAPTURE_MAX_BYTES, add)).toEqual(whole(BODY_CAPTURE_MAX_BYTES));
    },
  );

  test("one that is being stored is completed, and delays the next ones", () => {
    const body = new BodyRecorder();
    addInChunks(body, BODY_CAPTURE_MAX_BYTES / 2);
    storeUntilCut();
    addInChunks(body, BODY_CAPTURE_MAX_BYTES / 2);
    expect(write(body).isCut).toBe(false);
    nowMs += 10;
    expect(record(BODY_CAPTURE_MAX_BYTES)).toEqual(CUT);
    expect(memory.heldBytes).toBe(0);
  });

  test("large ones leave room for the beginnings of others", () => {
    storeUntilCut();
    let beginnings = 0;
    while (!record(SMALL_BODY_MAX_BYTES).isCut) beginnings += 1;
    // The large ones that were cut took some of them, and the last one may take more than there was.
    const reserved = (SMALL_BURST_BYTES - LARGE_BURST_BYTES) / SMALL_BODY_MAX_BYTES;
    expect(beginnings).toBeGreaterThan(0.9 * reserved);
  });
});

test("large bodies are given up first, then all bodies, then messages, and headers last", () => {
  const parts = ["largeBody", "body", "entry", "head"] as const;
  const listAdmitted = () => parts.filter((part) => memory.admits(part));
  expect(listAdmitted()).toEqual(parts);
  let leftBytes = WRITTEN_BYTES.burst;
  for (const [index, part] of parts.entries()) {
    memory.countWritten(leftBytes - WRITE_RESERVE_BYTES[part]);
    leftBytes = WRITE_RESERVE_BYTES[part];
    expect(listAdmitted()).toEqual(parts.slice(index + 1));
  }
});

test("bytes in memory count as written, and nothing is given up for longer than the burst takes to refill", () => {
  memory.countWritten(LARGE_BURST_BYTES - 1);
  expect(memory.admits("largeBody")).toBe(true);
  const reserved = memory.reserve(1);
  expect(memory.admits("largeBody")).toBe(false);
  memory.release(reserved);
  memory.countWritten(100 * WRITTEN_BYTES.burst);
  nowMs += WRITTEN_BYTES.burst * WRITTEN_BYTES.refillMs;
  expect(memory.admits("head")).toBe(false);
  nowMs += 1;
  expect(memory.admits("head")).toBe(true);
});
