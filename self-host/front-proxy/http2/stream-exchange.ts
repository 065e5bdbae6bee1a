/** A stream of HTTP/2, whose request becomes the text of HTTP/1.1, and whose response is taken from such a text. */
import { constants, type ServerHttp2Stream } from "node:http2";
import type { MemoryReservation } from "../../../shared/bounds/source-memory.ts";
import { createBodyReader, type BodyLength, type BodyReader } from "../http1/message-body.ts";
import { findResponseLength, HEAD_END, readStatus } from "../http1/response-reader.ts";
import { formatRequest } from "./request-text.ts";
import { toInformationalHeaders, toResponseFields } from "./response-head.ts";
import { SmallFrames } from "./small-frames.ts";

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_INTERNAL_ERROR, NGHTTP2_NO_ERROR } = constants;
/** What a waiting chunk of the request's body costs in addition to its data, which may be a single byte. */
const CHUNK_OVERHEAD_BYTES = 512;
const LINE_BREAK = Buffer.from("\r\n");
const LAST_CHUNK = Buffer.from("0\r\n\r\n");

type HandleWritten = (error?: Error | null) => void;

/** Bounds the body of a request. */
export interface BodyLimits {
  /** For the chunks that wait. */
  reservation: MemoryReservation;
  /** Counts a small frame. @returns false: it is one too many. */
  takeSmallFrame: () => boolean;
}

interface StreamExchangeOptions extends BodyLimits {
  /** Passes bytes of the request on. @returns false: no more until `readMore` is called. */
  pass: (bytes: Buffer) => boolean;
  /** The stream is closed, or was reset by the visitor. Called once or more often. */
  onClosed: () => void;
}

export class StreamExchange {
  readonly #stream: ServerHttp2Stream;
  readonly #options: StreamExchangeOptions;
  readonly #isHeadRequest: boolean;
  #isRequestComplete: boolean;
  /** Whether all of it was passed on as well. */
  #isRequestPassed: boolean;
  /** Chunks of the request's body that wait to be passed on. The window of the stream bounds their data only. */
  #unreadBytes = 0;
  /** Once the head of the response was sent. */
  #response: BodyReader | undefined;
  #responseLength: BodyLength = 0;
  /** With which a stream without a response is reset. */
  #resetCode = NGHTTP2_INTERNAL_ERROR;

  /** @param stream nothing was read from it. @param rawHeaders each name followed by its value. */
  constructor(
    stream: ServerHttp2Stream,
    rawHeaders: readonly string[],
    options: StreamExchangeOptions,
  ) {
    const request = formatRequest(rawHeaders, !stream.endAfterHeaders);
    this.#stream = stream;
    this.#options = options;
    this.#isHeadRequest = request.method === "HEAD";
    this.#isRequestComplete = stream.endAfterHeaders;
    this.#isRequestPassed = stream.endAfterHeaders;
    stream.on("error", () => undefined);
    stream.once("aborted", () => this.#closeSoon());
    stream.once("close", () => options.onClosed());
    options.pass(Buffer.from(request.head, "latin1"));
    if (!this.#isRequestComplete) this.#readBody(request.isChunked);
  }

  /** Whether the whole request was passed on, its response was complete, and the stream is closed. */
  get isComplete(): boolean {
    const isResponseComplete = this.#response?.isComplete ?? false;
    return this.#stream.destroyed && this.#isRequestPassed && isResponseComplete;
  }

  // ── The request ──

  readMore(): void {
    this.#stream.resume();
  }

  #readBody(isChunked: boolean): void {
    const stream = this.#stream;
    const push = stream.push.bind(stream);
    const pushChunk = (chunk: Buffer) => {
      if (stream.destroyed) return false;
      if (this.#reserve(chunk.length + CHUNK_OVERHEAD_BYTES)) return push(copyIfSmall(chunk));
      this.#refuse();
      return false;
    };
    const smallFrames = new SmallFrames(pushChunk);
    // Node.js calls this method, which is documented for implementers of streams, for each frame and at the end.
    stream.push = (frame: Buffer | null) => {
      if (frame && smallFrames.add(frame)) {
        if (!this.#options.takeSmallFrame()) this.#refuse();
        return stream.readableLength < stream.readableHighWaterMark;
      }
      smallFrames.flush();
      if (frame) return pushChunk(frame);
      this.#handleLastFrame();
      return push(null);
    };
    stream.pause();
    stream.on("data", (data: Buffer) => {
      this.#reserve(-data.length - CHUNK_OVERHEAD_BYTES);
      if (data.length === 0) return;
      if (!this.#options.pass(isChunked ? formatChunk(data) : data)) stream.pause();
    });
    stream.once("end", () => {
      if (!this.#isRequestComplete) return;
      if (isChunked) this.#options.pass(LAST_CHUNK);
      this.#isRequestPassed = true;
    });
  }

  #refuse(): void {
    this.#resetCode = NGHTTP2_ENHANCE_YOUR_CALM;
    this.#closeSoon();
  }

  #reserve(bytes: number): boolean {
    this.#unreadBytes += bytes;
    return this.#options.reservation.resize(this.#unreadBytes);
  }

  /** The stream was closed before if the visitor has reset it, which does not complete the request. */
  #handleLastFrame(): void {
    if (!this.#stream.closed) this.#isRequestComplete = true;
    else if (!this.#isRequestComplete) this.#closeSoon();
  }

  /** Node.js, which is calling, still uses the stream. */
  #closeSoon(): void {
    process.nextTick(() => this.#options.onClosed());
  }

  // ── The response ──

  /** @param bytes of the response. The head is whole. @param handleWritten called when more may follow, unless the stream is closed. */
  write(bytes: Buffer, handleWritten: HandleWritten): void {
    const stream = this.#stream;
    if (stream.closed || stream.destroyed) return;
    let body = bytes;
    try {
      if (!this.#response) body = bytes.subarray(this.#sendHeads(bytes));
    } catch {
      // The local server has sent a status or a field that HTTP/2 does not allow.
      this.#options.onClosed();
      return;
    }
    this.#sendBody(body, handleWritten);
  }

  /** @returns where the body begins. */
  #sendHeads(bytes: Buffer): number {
    let start = 0;
    while (!this.#response && start < bytes.length) {
      const end = bytes.indexOf(HEAD_END, start) + HEAD_END.length;
      const text = bytes.toString("latin1", start, end);
      const status = readStatus(text);
      start = end;
      if (status < 200) this.#stream.additionalHeaders(toInformationalHeaders(status, text));
      else this.#sendHead(status, text);
    }
    return start;
  }

  #sendHead(status: number, text: string): void {
    this.#responseLength = findResponseLength(status, text, this.#isHeadRequest);
    this.#response = createBodyReader(this.#responseLength);
    this.#stream.respond(toResponseFields(status, text), {
      endStream: this.#response.isComplete,
    });
  }

  #sendBody(bytes: Buffer, handleWritten: HandleWritten): void {
    const stream = this.#stream;
    const pieces: Uint8Array[] = [];
    this.#response?.read(bytes, (from, to) => {
      if (to > from) pieces.push(bytes.subarray(from, to));
    });
    // A response with status 205 has none, although its body may be chunked.
    const last = stream.writableEnded ? undefined : pieces.pop();
    if (last === undefined) handleWritten();
    else {
      stream.cork();
      for (const piece of pieces) stream.write(piece);
      stream.write(last, handleWritten);
      stream.uncork();
    }
    if (this.#response?.isComplete && !stream.writableEnded) stream.end();
  }

  /** Nothing more follows: an incomplete response is lost, unless it has no length, so that it ends like this (RFC 9112 §6.3). */
  end(): void {
    const stream = this.#stream;
    if (stream.destroyed) return this.#options.onClosed();
    if (stream.closed) return;
    const isComplete = this.#response?.isComplete ?? false;
    if (!isComplete && this.#responseLength !== Infinity) return this.#options.onClosed();
    if (!stream.writableEnded) stream.end();
    // The visitor need not send the rest of the request (RFC 9113 §8.1).
    if (!this.#isRequestComplete) stream.close(NGHTTP2_NO_ERROR);
  }

  /** Resets the stream, unless it is closed. */
  destroy(): void {
    const stream = this.#stream;
    if (!stream.headersSent) stream.close(this.#resetCode);
    // Once a response has begun, `close` first sends the end of it, as if it were complete. `destroy` with an error does not, and
    // always has the code INTERNAL_ERROR.
    stream.destroy(stream.closed ? undefined : new Error("the stream was reset"));
    this.#options.reservation.clear();
  }
}

/** A frame is part of what was read from the socket at once, which remains in memory as long as any part of it. */
function copyIfSmall(data: Buffer): Buffer {
  if (data.length > data.buffer.byteLength / 2) return data;
  const copy = Buffer.allocUnsafeSlow(data.length);
  data.copy(copy);
  return copy;
}

function formatChunk(data: Buffer): Buffer {
  const size = Buffer.from(`${data.length.toString(16)}\r\n`);
  return Buffer.concat([size, data, LINE_BREAK]);
}
