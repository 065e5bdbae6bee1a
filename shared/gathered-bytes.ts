/**
 * Bytes that come in pieces, in one piece. Pieces are not kept: one of a single byte can be a view of pages of
 * memory, so that what holds the pieces holds far more than their bytes.
 */
const FIRST_BYTES = 4 * 1024;

export class GatheredBytes {
  readonly #maxBytes: number;
  #buffer = new Uint8Array(0);
  #size = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** @returns whether there was room for it; if not, nothing of it is there. */
  add(piece: Uint8Array): boolean {
    const size = this.#size + piece.byteLength;
    if (size > this.#maxBytes) return false;
    if (size > this.#buffer.byteLength) this.#grow(size);
    this.#buffer.set(piece, this.#size);
    this.#size = size;
    return true;
  }

  get whole(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(0, this.#size);
  }

  /** By doubling, so that each byte is copied a few times however small the pieces are. */
  #grow(leastBytes: number): void {
    const wanted = Math.max(leastBytes, FIRST_BYTES, this.#buffer.byteLength * 2);
    const buffer = new Uint8Array(Math.min(wanted, this.#maxBytes));
    buffer.set(this.whole);
    this.#buffer = buffer;
  }
}
