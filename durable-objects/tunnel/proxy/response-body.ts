/**
 * The body of a response while it streams to the visitor: written at the pacer's rate, and granted to the agent
 * as the visitor's connection accepts it.
 */
import { isEventStream } from "../../../shared/raw-headers.ts";
import { compactView, type BufferedBytes } from "../buffered-bytes.ts";
import type { ResponseHeaders } from "./heads.ts";
import type { PacedQueue } from "./pacer.ts";

/** How the visitor notices a truncated body. `cut`: it is aborted, and the edge has the connection cut. */
type TruncationSignal = "abort" | "cut" | "end";

interface ResponseBodyDeps {
  queue: PacedQueue;
  buffered: BufferedBytes;
  truncationSignal: TruncationSignal;
  /** Called with the bytes that the visitor's connection accepted. */
  onWritten(bytes: number): void;
  /**
   * Called with the bytes that it will not accept, because the visitor disconnected. The request's abort signal does
   * not always report that.
   */
  onDiscarded(bytes: number): void;
  /** Called once, when no part of the body waits for the visitor. */
  onClosed(): void;
}

export class ResponseBody {
  readonly readable: ReadableStream;
  readonly #deps: ResponseBodyDeps;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  /** The chunks that wait for the pacer. */
  #paced: Uint8Array[] = [];
  #isClosed = false;

  /** @param length null: not known. */
  constructor(length: number | null, deps: ResponseBodyDeps) {
    // Native pipes: they enforce the `content-length`, and a write resolves when it was accepted.
    const pipe = length === null ? new IdentityTransformStream() : new FixedLengthStream(length);
    this.readable = pipe.readable;
    this.#deps = deps;
    this.#writer = pipe.writable.getWriter();
    this.#writer.closed.catch(() => {
      this.#close();
      deps.onDiscarded(0);
    });
  }

  get truncationSignal(): TruncationSignal {
    return this.#deps.truncationSignal;
  }

  /**
   * Not awaited: the stream's window bounds the bytes that wait here.
   * @returns false when the tunnel may not buffer this chunk.
   */
  write(chunk: Uint8Array): boolean {
    if (!this.#deps.buffered.hold(chunk.byteLength)) return false;
    this.writeHeld(compactView(chunk));
    return true;
  }

  /** Writes a chunk that `buffered` holds already. From now on, this body releases it. */
  writeHeld(chunk: Uint8Array): void {
    this.#paced.push(chunk);
    this.#deps.queue.push(chunk.byteLength, () => this.#writeNext());
  }

  end(): void {
    const close = () => this.#close();
    this.#deps.queue.push(0, () => void this.#writer.close().then(close, close));
  }

  /** Signals to the visitor that the body is incomplete. */
  truncate(): void {
    if (this.truncationSignal === "end") this.end();
    else this.discard();
  }

  /** Drops what was not written yet. A visitor who is still connected notices that bytes are missing. */
  discard(): void {
    const { queue, buffered } = this.#deps;
    queue.clear();
    for (const { byteLength } of this.#paced) buffered.release(byteLength);
    this.#paced = [];
    this.#writer.abort(new Error("the response was truncated")).catch(() => undefined);
    this.#close();
  }

  #writeNext(): void {
    const deps = this.#deps;
    const chunk = this.#paced.shift()!;
    const { byteLength } = chunk;
    this.#writer.write(chunk).then(
      () => {
        deps.buffered.release(byteLength);
        deps.onWritten(byteLength);
      },
      () => {
        deps.buffered.release(byteLength);
        deps.onDiscarded(byteLength);
      },
    );
  }

  #close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#deps.onClosed();
  }
}

/**
 * How to end a truncated body so that no visitor takes it for a complete one. With a `Content-Length`, or behind
 * the hosted edge, visitors notice that bytes are missing. Without either, workerd would end an aborted body with the
 * chunk that means "complete": so the edge has the connection cut before. Server-sent events are ended, because their
 * readers reconnect after any end.
 */
export function getTruncationSignal(
  headers: ResponseHeaders,
  isTruncationVisible: boolean,
): TruncationSignal {
  if (isTruncationVisible) return "abort";
  const hasEvents = headers.some(
    ([name, value]) => name === "content-type" && isEventStream(value),
  );
  return hasEvents ? "end" : "cut";
}
