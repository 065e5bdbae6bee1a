/** An answer's body while it streams to the visitor: written as it may pass, granted as it is taken. */
import type { PacedQueue } from "./pacer.ts";

export type CutBy = "abort" | "end" | "silence";

export class ResponseBody {
  readonly readable: ReadableStream;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #queue: PacedQueue;
  readonly #cutBy: CutBy;
  readonly #taken: (bytes: number) => void;
  readonly #dropped: (bytes: number) => void;

  /**
   * @param taken told how many bytes the visitor's connection took.
   * @param dropped told how many it will not take: the visitor left. The request's abort signal does not
   * always say so.
   */
  constructor(
    length: number | null,
    queue: PacedQueue,
    cutBy: CutBy,
    taken: (bytes: number) => void,
    dropped: (bytes: number) => void,
  ) {
    // Native pipes: their length makes `content-length` true, and a write ends when it was taken.
    const pipe = length === null ? new IdentityTransformStream() : new FixedLengthStream(length);
    this.readable = pipe.readable;
    this.#writer = pipe.writable.getWriter();
    this.#writer.closed.catch(() => undefined);
    this.#queue = queue;
    this.#cutBy = cutBy;
    this.#taken = taken;
    this.#dropped = dropped;
  }

  /** Not awaited: what waits here is bounded by the stream's window. */
  write(chunk: Uint8Array): void {
    this.#queue.push(chunk.byteLength, () => {
      this.#writer.write(chunk).then(
        () => this.#taken(chunk.byteLength),
        () => this.#dropped(chunk.byteLength),
      );
    });
  }

  end(): void {
    this.#queue.push(0, () => void this.#writer.close().catch(() => undefined));
  }

  /** The rest will not come. */
  cut(): void {
    if (this.#cutBy === "end") return this.end();
    if (this.#cutBy === "silence") return;
    this.#queue.clear();
    this.#writer.abort(new Error("the answer was cut off")).catch(() => undefined);
  }
}
