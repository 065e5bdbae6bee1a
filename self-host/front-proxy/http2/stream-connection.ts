/**
 * A stream of HTTP/2 in the place of a connection of HTTP/1.1: one request is read from it, and its response is written to
 * it. So all requests are checked, limited and forwarded by the same code, and only this file and the session know HTTP/2.
 */
import { constants, type ServerHttp2Stream } from "node:http2";
import { Duplex } from "node:stream";
import type { MemoryReservation } from "../../../shared/bounds/source-memory.ts";
import { createBodyReader, type BodyLength, type BodyReader } from "../message-body.ts";
import { findResponseLength, HEAD_END, readStatus } from "../response-reader.ts";
import { formatRequest } from "./request-text.ts";
import { toInformationalHeaders, toResponseFields } from "./response-head.ts";

const { NGHTTP2_NO_ERROR } = constants;
/** What a frame that waits costs besides its data, also if that is a single byte. */
const FRAME_OVERHEAD_BYTES = 256;
/** Bytes of the request's body that are read ahead, besides the stream's window. */
const READ_AHEAD_BYTES = 16 * 1024;
const LINE_BREAK = Buffer.from("\r\n");
const LAST_CHUNK = Buffer.from("0\r\n\r\n");

export class StreamConnection extends Duplex {
  bytesRead = 0;
  bytesWritten = 0;
  readonly #stream: ServerHttp2Stream;
  readonly #isHeadRequest: boolean;
  #isRequestComplete: boolean;
  /** Frames of the request's body that wait to be forwarded. The window of the stream bounds their data only. */
  #unreadBytes = 0;
  readonly #reservation: MemoryReservation;
  /** Once the head of the response was sent. */
  #response: BodyReader | undefined;
  #responseLength: BodyLength = 0;

  /**
   * @param stream nothing was read from it.
   * @param rawHeaders names and values by turns.
   * @param reservation for what waits of the request's body.
   */
  constructor(
    stream: ServerHttp2Stream,
    rawHeaders: readonly string[],
    reservation: MemoryReservation,
  ) {
    super({ readableHighWaterMark: READ_AHEAD_BYTES, writableHighWaterMark: 1 });
    const request = formatRequest(rawHeaders, !stream.endAfterHeaders);
    this.#stream = stream;
    this.#reservation = reservation;
    this.#isHeadRequest = request.method === "HEAD";
    this.#isRequestComplete = stream.endAfterHeaders;
    this.on("error", () => undefined);
    stream.on("error", () => undefined);
    stream.once("aborted", () => this.#destroySoon());
    stream.once("close", () => this.destroy());
    this.#pass(Buffer.from(request.head, "latin1"));
    if (!this.#isRequestComplete) this.#readBody(request.isChunked);
  }

  #readBody(isChunked: boolean): void {
    const stream = this.#stream;
    const push = stream.push.bind(stream);
    // Node.js calls this method, which is documented for implementers of streams, for each frame and at the end.
    stream.push = (chunk: Buffer | null) => {
      if (chunk === null) this.#handleLastFrame();
      else if (!this.#reserve(chunk.length + FRAME_OVERHEAD_BYTES)) {
        this.#destroySoon();
        return false;
      }
      return push(chunk);
    };
    stream.pause();
    stream.on("data", (data: Buffer) => {
      this.#reserve(-data.length - FRAME_OVERHEAD_BYTES);
      const hasRoom = isChunked ? this.#passChunk(data) : this.#pass(data);
      if (!hasRoom) stream.pause();
    });
    stream.once("end", () => {
      if (isChunked && this.#isRequestComplete) this.#pass(LAST_CHUNK);
    });
  }

  #reserve(bytes: number): boolean {
    this.#unreadBytes += bytes;
    return this.#reservation.resize(this.#unreadBytes);
  }

  /** The stream was closed before if the visitor has reset it, which does not complete the request. */
  #handleLastFrame(): void {
    if (!this.#stream.closed) this.#isRequestComplete = true;
    else if (!this.#isRequestComplete) this.#destroySoon();
  }

  #passChunk(data: Buffer): boolean {
    if (data.length === 0) return true;
    const size = Buffer.from(`${data.length.toString(16)}\r\n`);
    return this.#pass(Buffer.concat([size, data, LINE_BREAK]));
  }

  #pass(bytes: Buffer): boolean {
    this.bytesRead += bytes.length;
    return this.push(bytes);
  }

  override _read(): void {
    this.#stream.resume();
  }

  // ── The response ──

  override _write(bytes: Buffer, _: BufferEncoding, handleWritten: () => void): void {
    const stream = this.#stream;
    this.bytesWritten += bytes.length;
    // Its close event follows.
    if (stream.closed || stream.destroyed) return;
    let body = bytes;
    try {
      if (!this.#response) body = bytes.subarray(this.#sendHeads(bytes));
    } catch {
      // The local server has chosen a status or a field that HTTP/2 does not have.
      this.destroy();
      return;
    }
    this.#sendBody(body, handleWritten);
  }

  /** @param bytes begin with a whole head. @returns where the body begins. */
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

  #sendBody(bytes: Buffer, handleWritten: () => void): void {
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

  /** A response without a length ends with the connection (RFC 9112 §6.3). */
  get #isResponseComplete(): boolean {
    return (this.#response?.isComplete ?? false) || this.#responseLength === Infinity;
  }

  override _final(handleFinished: () => void): void {
    const stream = this.#stream;
    stream.once("close", handleFinished);
    if (stream.closed || stream.destroyed) return;
    if (!this.#isResponseComplete) this.destroy();
    else {
      if (!stream.writableEnded) stream.end();
      // The visitor need not send the rest of the request (RFC 9113 §8.1).
      if (!this.#isRequestComplete) stream.close(NGHTTP2_NO_ERROR);
    }
  }

  /** Like that of a socket. */
  resetAndDestroy(): void {
    this.destroy();
  }

  /** Node.js, which is calling, still uses the stream. */
  #destroySoon(): void {
    process.nextTick(() => this.destroy());
  }

  override _destroy(error: Error | null, handleDestroyed: (error: Error | null) => void): void {
    const stream = this.#stream;
    // Only `destroy` with an error resets it: `close` first sends the end of the response, as if it were complete.
    stream.destroy(stream.closed ? undefined : new Error("the stream was reset"));
    this.#reservation.clear();
    handleDestroyed(error);
  }
}
