/**
 * Collects bytes that arrive in chunks, up to a bound. The chunks are copied: a chunk of one byte can be a view of
 * whole pages of memory, so holding the chunks would hold far more than their bytes.
 */
import { freeBytes } from "../bytes.ts";

const FIRST_BYTES = 4 * 1024;

export class BoundedBuffer {
  readonly #maxBytes: number;
  #buffer = new Uint8Array(0);
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns false when there is no room for the whole chunk; nothing of it is added then. */
  append(chunk: Uint8Array): boolean {
    const size = this.#size + chunk.byteLength;
    if (size > this.#maxBytes) return false;
    if (size > this.#buffer.byteLength) this.#grow(size);
    this.#buffer.set(chunk, this.#size);
    this.#size = size;
    return true;
  }

  /** Valid until the next `append` or `clear`. */
  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(0, this.#size);
  }

  /** Frees the memory. */
  clear(): void {
    freeBytes(this.#buffer);
    this.#buffer = new Uint8Array(0);
    this.#size = 0;
  }

  /** Doubles the buffer, so that each byte is copied only a few times, however small the chunks are. */
  #grow(minBytes: number): void {
    const wanted = Math.max(minBytes, FIRST_BYTES, this.#buffer.byteLength * 2);
    const buffer = new Uint8Array(Math.min(wanted, this.#maxBytes));
    buffer.set(this.bytes);
    freeBytes(this.#buffer);
    this.#buffer = buffer;
  }
}
