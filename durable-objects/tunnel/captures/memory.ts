/** What captures may hold in memory, over all the exchanges of a tunnel together. */
export class CaptureMemory {
  readonly #maxBytes: number;
  #heldBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** @returns how many of the bytes may be held. Each of them is to be given back. */
  reserve(bytes: number): number {
    const taken = Math.max(0, Math.min(bytes, this.#maxBytes - this.#heldBytes));
    this.#heldBytes += taken;
    return taken;
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes;
  }
}
