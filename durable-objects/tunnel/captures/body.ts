/** The beginning of one side's body, as it passes. */
import type { CaptureMemory } from "./memory.ts";
import type { KeptBody } from "./record.ts";

/** Kept of each side of an exchange; what is longer is cut, and says so. */
export const BODY_CAPTURE_MAX_BYTES = 512 * 1024;

const NOTHING = new Uint8Array();

export class PassingBody {
  /** Of the whole body, kept or not. */
  size = 0;
  /** One, however small the pieces are that come: each would cost many times its size. */
  #buffer = NOTHING;
  #keptBytes = 0;
  #isWhole = false;

  /** @param memory null: nothing is kept of it. */
  add(bytes: Uint8Array, memory: CaptureMemory | null): void {
    this.size += bytes.byteLength;
    // Once something is missing nothing is kept behind it.
    if (memory === null || this.#keptBytes < this.size - bytes.byteLength) return;
    const wanted = Math.min(bytes.byteLength, BODY_CAPTURE_MAX_BYTES - this.#keptBytes);
    if (wanted === 0) return;
    this.#makeRoom(wanted, memory);
    const room = Math.min(wanted, this.#buffer.byteLength - this.#keptBytes);
    // A copy: the message that it came in holds others' bytes too, and buffers are used again.
    this.#buffer.set(bytes.subarray(0, room), this.#keptBytes);
    this.#keptBytes += room;
  }

  /** It passed to its end. */
  end(): void {
    this.#isWhole = true;
  }

  /** What it took of the memory. */
  get heldBytes(): number {
    return this.#buffer.byteLength;
  }

  kept(): KeptBody {
    const isCut = !this.#isWhole || this.#keptBytes < this.size;
    // A full buffer is never written to again.
    const isFull = this.#keptBytes === this.#buffer.byteLength;
    return { bytes: isFull ? this.#buffer : this.#buffer.slice(0, this.#keptBytes), isCut };
  }

  /** For as much of it as the memory allows. */
  #makeRoom(wanted: number, memory: CaptureMemory): void {
    const held = this.#buffer.byteLength;
    const needed = this.#keptBytes + wanted;
    if (needed <= held) return;
    const more = Math.min(Math.max(needed, 2 * held), BODY_CAPTURE_MAX_BYTES) - held;
    const grown = new Uint8Array(held + memory.take(more));
    grown.set(this.#buffer);
    this.#buffer = grown;
  }
}
