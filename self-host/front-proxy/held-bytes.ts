/** Bytes of a visitor that have arrived and have to wait. The visitor is not read from meanwhile. */
export class HeldBytes {
  readonly #resume: () => void;
  #bytes: Uint8Array | undefined;
  #isYielding = false;

  /** @param resume called when others had their turn. */
  constructor(resume: () => void) {
    this.#resume = resume;
  }

  get bytes(): Uint8Array | undefined {
    return this.#bytes;
  }

  /** Whether others have their turn first. */
  get isYielding(): boolean {
    return this.#isYielding;
  }

  /** @returns false: nothing more is read until the bytes are taken. */
  hold(bytes: Uint8Array): false {
    this.#bytes = bytes;
    return false;
  }

  /** The same, until other connections had their turn. */
  yield(bytes: Uint8Array): false {
    this.#isYielding = true;
    setImmediate(() => {
      this.#isYielding = false;
      this.#resume();
    });
    return this.hold(bytes);
  }

  /** @returns the bytes, which are no longer held. */
  take(): Uint8Array | undefined {
    const bytes = this.#bytes;
    this.#bytes = undefined;
    return bytes;
  }
}
