/** The beginning of one side's body, as it passes. */
import type { CaptureMemory } from "./memory.ts";
import type { CapturedBody } from "./record.ts";

/** Kept of each side of an exchange; what is longer is cut, and says so. */
export const BODY_CAPTURE_MAX_BYTES = 512 * 1024;

const NOTHING = new Uint8Array();

export class BodyRecorder {
  /** Of the whole body, kept or not. */
  size = 0;
  /** One, however small the pieces are that come: each would cost many times its size. */
  #buffer = NOTHING;
  #storedBytes = 0;
  #hasEnded = false;

  /** @param memory null: nothing is kept of it. */
  add(bytes: Uint8Array, memory: CaptureMemory | null): void {
    this.size += bytes.byteLength;
    // Once something is missing nothing is kept behind it.
    if (memory === null || this.#storedBytes < this.size - bytes.byteLength) return;
    const wanted = Math.min(bytes.byteLength, BODY_CAPTURE_MAX_BYTES - this.#storedBytes);
    if (wanted === 0) return;
    this.#grow(wanted, memory);
    const room = Math.min(wanted, this.#buffer.byteLength - this.#storedBytes);
    // A copy: the message that it came in holds others' bytes too, and buffers are used again.
    this.#buffer.set(bytes.subarray(0, room), this.#storedBytes);
    this.#storedBytes += room;
  }

  /** It passed to its end. */
  end(): void {
    this.#hasEnded = true;
  }

  /** What it took of the memory. */
  get heldBytes(): number {
    return this.#buffer.byteLength;
  }

  toCapturedBody(): CapturedBody {
    const isCut = !this.#hasEnded || this.#storedBytes < this.size;
    // A full buffer is never written to again.
    const isFull = this.#storedBytes === this.#buffer.byteLength;
    return { bytes: isFull ? this.#buffer : this.#buffer.slice(0, this.#storedBytes), isCut };
  }

  /** For as much of it as the memory allows. */
  #grow(wanted: number, memory: CaptureMemory): void {
    const held = this.#buffer.byteLength;
    const needed = this.#storedBytes + wanted;
    if (needed <= held) return;
    const more = Math.min(Math.max(needed, 2 * held), BODY_CAPTURE_MAX_BYTES) - held;
    const grown = new Uint8Array(held + memory.reserve(more));
    grown.set(this.#buffer);
    this.#buffer = grown;
  }
}
