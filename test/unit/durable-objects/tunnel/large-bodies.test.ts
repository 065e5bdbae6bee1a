import { beforeEach, describe, expect, test } from "vitest";
import {
  BODY_CAPTURE_MAX_BYTES,
  BodyRecorder,
} from "../../../../durable-objects/tunnel/captures/body.ts";
import {
  CaptureMemory,
  LARGE_BODY_BYTES,
  SMALL_BODY_MAX_BYTES,
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

/** A body that is written as soon as it has ended. */
function record(size: number, add = addInChunks) {
  const body = new BodyRecorder();
  add(body, size);
  body.end();
  memory.release(body.heldBytes);
  const { bytes, isCut } = body.toCapturedBody();
  return { storedBytes: bytes.byteLength, isCut };
}

const whole = (size: number) => ({ storedBytes: size, isCut: false });
const CUT = { storedBytes: SMALL_BODY_MAX_BYTES, isCut: true };

/** @returns how many bytes were stored until a body was cut. */
function storeUntilCut(): number {
  for (let storedBytes = 0; storedBytes < 2 * LARGE_BODY_BYTES.burst;) {
    const stored = record(BODY_CAPTURE_MAX_BYTES);
    if (stored.isCut) return storedBytes;
    storedBytes += stored.storedBytes;
  }
  throw new Error("no large body is cut");
}

describe("of large bodies", () => {
  test("64 MiB are stored at once, then beyond the first 16 KiB of each a mebibyte a second", () => {
    expect(storeUntilCut()).toBeGreaterThanOrEqual(LARGE_BODY_BYTES.burst);
    let storedBytes = 0;
    const seconds = 100;
    for (const end = nowMs + seconds * 1_000; nowMs < end; nowMs += 100) {
      storedBytes += record(BODY_CAPTURE_MAX_BYTES).storedBytes - SMALL_BODY_MAX_BYTES;
    }
    const perSecond = storedBytes / seconds / (1024 * 1024);
    expect(perSecond).toBeGreaterThan(0.9);
    expect(perSecond).toBeLessThan(1.01);
  });

  test.each([
    ["in chunks", addInChunks],
    ["at once", (body: BodyRecorder, size: number) => body.add(new Uint8Array(size), memory)],
  ])(
    "beyond that only the beginning is stored, and marked as cut, when they arrive %s",
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
    body.end();
    expect(body.toCapturedBody().isCut).toBe(false);
    memory.release(body.heldBytes);
    nowMs += 10;
    expect(record(BODY_CAPTURE_MAX_BYTES)).toEqual(CUT);
    expect(memory.heldBytes).toBe(0);
  });

  test("any number of small ones counts nothing", () => {
    for (let n = 0; n < 5_000; n += 1) record(SMALL_BODY_MAX_BYTES);
    expect(storeUntilCut()).toBeGreaterThanOrEqual(LARGE_BODY_BYTES.burst);
  });
});
