/** An answer's body while it streams to the visitor: written as it arrives, granted as it is taken. */

export type CutBy = "abort" | "end" | "silence";

export class ResponseBody {
  readonly readable: ReadableStream;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #cutBy: CutBy;
  readonly #taken: (bytes: number) => void;

  /** @param taken told how many bytes are held no longer. */
  constructor(length: number | null, cutBy: CutBy, taken: (bytes: number) => void) {
    // Native pipes: their length makes `content-length` true, and a write ends when it was taken.
    const pipe = length === null ? new IdentityTransformStream() : new FixedLengthStream(length);
    this.readable = pipe.readable;
    this.#writer = pipe.writable.getWriter();
    this.#writer.closed.catch(() => undefined);
    this.#cutBy = cutBy;
    this.#taken = taken;
  }

  /** Not awaited: what waits here is bounded by the stream's window. */
  write(chunk: Uint8Array): void {
    // Taken or, where the visitor left, dropped: either way it is held no longer.
    const settled = (): void => this.#taken(chunk.byteLength);
    this.#writer.write(chunk).then(settled, settled);
  }

  end(): void {
    this.#writer.close().catch(() => undefined);
  }

  /** The rest will not come. */
  cut(): void {
    if (this.#cutBy === "end") return this.end();
    if (this.#cutBy === "silence") return;
    this.#writer.abort(new Error("the answer was cut off")).catch(() => undefined);
  }
}
