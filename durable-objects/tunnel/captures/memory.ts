/** Bounds the memory that captures use, over all the exchanges of a tunnel together. */
export class CaptureMemory {
  readonly #maxBytes: number;
  #heldBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** @returns how many of the bytes were reserved. The caller must release them. */
  reserve(bytes: number): number {
    const reserved = Math.max(0, Math.min(bytes, this.#maxBytes - this.#heldBytes));
    this.#heldBytes += reserved;
    return reserved;
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes;
  }
}
