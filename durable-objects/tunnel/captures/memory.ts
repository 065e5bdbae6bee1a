/** Bounds the memory that captures use, over all the exchanges of a tunnel together. */
export class CaptureMemory {
  readonly #maxBytes: number;
  #heldBytes = 0;
  /** The part of it that heads hold. */
  #headBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** What bodies and messages hold. */
  get bodyBytes(): number {
    return this.#heldBytes - this.#headBytes;
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

  /** @returns false when there is no memory for the whole head. Otherwise the caller must `releaseHead` it. */
  reserveHead(bytes: number): boolean {
    if (bytes > this.#maxBytes - this.#heldBytes) return false;
    this.#heldBytes += bytes;
    this.#headBytes += bytes;
    return true;
  }

  releaseHead(bytes: number): void {
    this.#heldBytes -= bytes;
    this.#headBytes -= bytes;
  }
}
