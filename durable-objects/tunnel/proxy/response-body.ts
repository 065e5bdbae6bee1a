/**
 * The body of a response while it streams to the visitor: written at the pacer's rate, and granted to the agent
 * as the visitor's connection accepts it.
 */
import { FRAME_DATA_MAX_BYTES } from "../../../protocol/limits.ts";
import { concatBytes } from "../../../shared/bytes.ts";
import { isEventStream } from "../../../shared/raw-headers.ts";
import { compactView, type BufferedBytes } from "../buffered-bytes.ts";
import type { ResponseHeaders } from "./heads.ts";
import type { PacedQueue } from "./pacer.ts";

/**
 * How many parts of a body may wait for the pacer and for the visitor's connection. Chunks that arrive meanwhile are joined: a write
 * takes the platform as long as copying tens of kilobytes, and an agent can send a hundred thousand chunks in one message.
 */
const PARTS_MAX = 8;
const PART_MAX_BYTES = FRAME_DATA_MAX_BYTES;

/** Chunks that are written together. */
interface Part {
  bytes: Uint8Array;
  chunks: number;
}

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
  /** The chunks that wait until there are fewer than `PARTS_MAX` parts. */
  #waiting: Uint8Array[] = [];
  /** The parts that wait for the pacer. */
  #paced: Part[] = [];
  /** The parts that the visitor's connection has not accepted yet. */
  #written = 0;
  /** Whether no chunk follows. */
  #isEnding = false;
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
    this.#waiting.push(chunk);
    this.#advance();
  }

  end(): void {
    this.#isEnding = true;
    this.#advance();
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
    for (const { bytes, chunks } of this.#paced) buffered.release(bytes.byteLength, chunks);
    for (const { byteLength } of this.#waiting) buffered.release(byteLength);
    this.#paced = [];
    this.#waiting = [];
    this.#isEnding = false;
    this.#writer.abort(new Error("the response was truncated")).catch(() => undefined);
    this.#close();
  }

  /** Passes waiting chunks on to the pacer. */
  #advance(): void {
    while (this.#waiting.length > 0 && this.#paced.length + this.#written < PARTS_MAX) {
      const part = this.#takePart();
      this.#paced.push(part);
      this.#deps.queue.push(part.bytes.byteLength, () => this.#writeNext());
    }
    if (!this.#isEnding || this.#waiting.length > 0) return;
    this.#isEnding = false;
    const close = () => this.#close();
    this.#deps.queue.push(0, () => void this.#writer.close().then(close, close));
  }

  /** As many of the waiting chunks as one part may have, or a larger one alone. */
  #takePart(): Part {
    let chunks = 0;
    let length = 0;
    for (const { byteLength } of this.#waiting) {
      if (chunks > 0 && length + byteLength > PART_MAX_BYTES) break;
      chunks += 1;
      length += byteLength;
    }
    const taken = this.#waiting.splice(0, chunks);
    return { bytes: chunks === 1 ? taken[0]! : concatBytes(taken), chunks };
  }

  #writeNext(): void {
    const deps = this.#deps;
    const { bytes, chunks } = this.#paced.shift()!;
    const { byteLength } = bytes;
    this.#written += 1;
    const record = (handle: (bytes: number) => void): void => {
      this.#written -= 1;
      deps.buffered.release(byteLength, chunks);
      handle(byteLength);
      this.#advance();
    };
    this.#writer.write(bytes).then(
      () => record((accepted) => deps.onWritten(accepted)),
      () => record((dropped) => deps.onDiscarded(dropped)),
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
