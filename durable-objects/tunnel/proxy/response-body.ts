/**
 * The body of a response while it streams to the visitor: written at the pacer's rate, and granted to the agent
 * as the visitor's connection accepts it.
 */
import type { PacedQueue } from "./pacer.ts";

/** How the visitor notices a truncated body; `silence`: the connection stays open without more bytes. */
export type TruncationSignal = "abort" | "end" | "silence";

export class ResponseBody {
  readonly readable: ReadableStream;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #queue: PacedQueue;
  readonly #truncationSignal: TruncationSignal;
  readonly #onWritten: (bytes: number) => void;
  readonly #onDiscarded: (bytes: number) => void;

  /**
   * @param onWritten called with the bytes that the visitor's connection accepted.
   * @param onDiscarded called with the bytes that it will not accept, because the visitor disconnected. The
   * request's abort signal does not always report that.
   */
  constructor(
    length: number | null,
    queue: PacedQueue,
    truncationSignal: TruncationSignal,
    onWritten: (bytes: number) => void,
    onDiscarded: (bytes: number) => void,
  ) {
    // Native pipes: they enforce the `content-length`, and a write resolves when it was accepted.
    const pipe = length === null ? new IdentityTransformStream() : new FixedLengthStream(length);
    this.readable = pipe.readable;
    this.#writer = pipe.writable.getWriter();
    this.#writer.closed.catch(() => undefined);
    this.#queue = queue;
    this.#truncationSignal = truncationSignal;
    this.#onWritten = onWritten;
    this.#onDiscarded = onDiscarded;
  }

  /** Not awaited: the stream's window bounds the bytes that wait here. */
  write(chunk: Uint8Array): void {
    this.#queue.push(chunk.byteLength, () => {
      this.#writer.write(chunk).then(
        () => this.#onWritten(chunk.byteLength),
        () => this.#onDiscarded(chunk.byteLength),
      );
    });
  }

  end(): void {
    this.#queue.push(0, () => void this.#writer.close().catch(() => undefined));
  }

  /** Signals to the visitor that the body is incomplete. */
  truncate(): void {
    if (this.#truncationSignal === "end") return this.end();
    if (this.#truncationSignal === "silence") return;
    this.#queue.clear();
    this.#writer.abort(new Error("the response was truncated")).catch(() => undefined);
  }
}
