/** Records the beginning of the request's or the response's body as it streams through. */
import { SMALL_BODY_MAX_BYTES, type CaptureMemory } from "./memory.ts";
import type { CapturedBody } from "./record.ts";

/** Recorded of each body of an exchange; a longer body is cut and marked as cut. */
export const BODY_CAPTURE_MAX_BYTES = 512 * 1024;

const EMPTY = new Uint8Array();

export class BodyRecorder {
  /** The size of the whole body, recorded or not. */
  size = 0;
  /** A single buffer: a small chunk by itself would use many times its size. */
  #buffer = EMPTY;
  #recordedBytes = 0;
  #hasEnded = false;

  /** @param memory null: only the size is counted. */
  add(bytes: Uint8Array, memory: CaptureMemory | null): void {
    this.size += bytes.byteLength;
    // After a gap nothing more is recorded.
    if (memory === null || this.#recordedBytes < this.size - bytes.byteLength) return;
    const wantedBytes = Math.min(
      bytes.byteLength,
      this.#getMaxBytes(bytes.byteLength, memory) - this.#recordedBytes,
    );
    if (wantedBytes === 0) return;
    this.#grow(wantedBytes, memory);
    const copiedBytes = Math.min(wantedBytes, this.#buffer.byteLength - this.#recordedBytes);
    // A copy: the message also holds other streams' bytes, and its buffer is reused.
    this.#buffer.set(bytes.subarray(0, copiedBytes), this.#recordedBytes);
    this.#recordedBytes += copiedBytes;
  }

  /** The body is complete. */
  end(): void {
    this.#hasEnded = true;
  }

  /** The memory reserved for it. */
  get heldBytes(): number {
    return this.#buffer.byteLength;
  }

  toCapturedBody(): CapturedBody {
    const isCut = !this.#hasEnded || this.#recordedBytes < this.size;
    // A full buffer is never written to again.
    const isFull = this.#recordedBytes === this.#buffer.byteLength;
    return { bytes: isFull ? this.#buffer : this.#buffer.slice(0, this.#recordedBytes), isCut };
  }

  /**
   * How much of the body may be recorded with these bytes. A body is admitted with its first bytes, and a large one again when
   * it turns out to be one; an admitted one is completed.
   */
  #getMaxBytes(addedBytes: number, memory: CaptureMemory): number {
    const isLarge = this.#recordedBytes + addedBytes > SMALL_BODY_MAX_BYTES;
    const wasAdmitted = this.#recordedBytes > (isLarge ? SMALL_BODY_MAX_BYTES : 0);
    if (wasAdmitted || memory.admits(isLarge ? "largeBody" : "body")) return BODY_CAPTURE_MAX_BYTES;
    return this.#recordedBytes > 0 || memory.admits("body") ? SMALL_BODY_MAX_BYTES : 0;
  }

  /** Makes room for as many of the bytes as the memory allows. */
  #grow(wantedBytes: number, memory: CaptureMemory): void {
    const held = this.#buffer.byteLength;
    const needed = this.#recordedBytes + wantedBytes;
    if (needed <= held) return;
    const more = Math.min(Math.max(needed, 2 * held), BODY_CAPTURE_MAX_BYTES) - held;
    const grown = new Uint8Array(held + memory.reserve(more));
    grown.set(this.#buffer);
    this.#buffer = grown;
  }
}
