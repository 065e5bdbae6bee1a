/**
 * Joins a local TCP connection with a stream of frames (docs/agent-protocol.md): `data` both ways with credit end
 * to end, an end of either side (FIN, flag `end`) ends that direction alone, a reset is a reset on the other side.
 */
import type { Socket } from "node:net";
import { ReceiveWindow, type SendWindows } from "../protocol/wire/flow.ts";
import {
  FLAG,
  FRAME,
  RESET,
  type Frame,
  type FrameWriter,
  type ResetCode,
} from "../protocol/wire/frames.ts";
import { FRAME_DATA_MAX_BYTES, STREAM_WINDOW_BYTES } from "../protocol/limits.ts";
import { setReceiver } from "../sockets/socket-reader.ts";
import { reset } from "../sockets/splice.ts";

export interface FrameSpliceOptions {
  /** The frames' stream. */
  id: number;
  windows: SendWindows;
  send(write: (writer: FrameWriter) => void): void;
  /** Both directions have ended and all bytes are delivered. */
  onComplete(): void;
  /** The local connection broke; the other end is to be told. `completed` does not follow. */
  onBreak(code: ResetCode, reason: string): void;
}

export class FrameSplice {
  /** Bytes that came as frames, and from the local connection. */
  bytesFromFrames = 0;
  bytesFromSocket = 0;
  readonly #socket: Socket;
  readonly #options: FrameSpliceOptions;
  readonly #received = new ReceiveWindow(STREAM_WINDOW_BYTES);
  /** What was read and may not be sent yet; reading rests meanwhile. */
  #unsent: Uint8Array = new Uint8Array();
  #hasSocketEnded = false;
  #hasFramesEnded = false;
  #isEndSent = false;
  /** The local connection has taken and given everything, and is closed. */
  #isSocketDone = false;
  #isClosed = false;

  /** @param socket paused and made with `allowHalfOpen`; it may still be connecting. */
  constructor(socket: Socket, options: FrameSpliceOptions) {
    this.#socket = socket;
    this.#options = options;
    setReceiver(socket, (bytes) => this.#read(bytes));
    socket.on("end", () => {
      this.#hasSocketEnded = true;
      if (this.#unsent.length === 0) this.#sendEnd();
    });
    let problem = "the connection broke";
    socket.on("error", (error) => (problem = error.message));
    socket.once("close", (hadError) => this.#socketClosed(hadError, problem));
    if (socket.destroyed) queueMicrotask(() => this.#socketClosed(true, problem));
  }

  /** Begins to read the local connection. */
  start(): void {
    this.#socket.resume();
  }

  /** @returns false when the frame makes no sense. */
  receive(frame: Frame): boolean {
    if (this.#isClosed) return true;
    if (frame.type !== FRAME.data || this.#hasFramesEnded) return false;
    const { length } = frame.payload;
    if (!this.#received.recordReceived(length)) return false;
    this.bytesFromFrames += length;
    const isLast = (frame.flags & FLAG.end) !== 0;
    if (isLast) {
      this.#hasFramesEnded = true;
      this.#received.end();
    }
    if (length > 0) this.#socket.write(frame.payload, (error) => error || this.#consumed(length));
    if (isLast) this.#socket.end();
    return true;
  }

  /** The other end broke the stream, or its connection is lost. */
  abort(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    reset(this.#socket);
  }

  // ── From the local connection ──

  #read(bytes: Uint8Array): boolean {
    this.bytesFromSocket += bytes.length;
    this.#unsent = bytes;
    return this.#sendAvailable();
  }

  /** @returns whether everything is sent. Otherwise it goes on, and reading with it, when there is credit. */
  #sendAvailable(): boolean {
    const { id, windows } = this.#options;
    while (this.#unsent.length > 0) {
      const available = windows.available(id);
      if (available <= 0) {
        windows.whenAvailable(id, () => this.#resumeSending());
        return false;
      }
      const part = this.#unsent.subarray(0, Math.min(available, FRAME_DATA_MAX_BYTES));
      this.#unsent = this.#unsent.subarray(part.length);
      windows.recordSent(id, part.length);
      // Copied before this returns.
      this.#options.send((writer) => writer.writeBytes(FRAME.data, 0, id, part));
    }
    return true;
  }

  #resumeSending(): void {
    if (this.#isClosed || !this.#sendAvailable()) return;
    if (this.#hasSocketEnded) this.#sendEnd();
    else this.#socket.resume();
  }

  #sendEnd(): void {
    if (this.#isClosed) return;
    const { id, windows } = this.#options;
    this.#options.send((writer) => writer.writeBytes(FRAME.data, FLAG.end, id, new Uint8Array()));
    windows.end(id);
    this.#isEndSent = true;
    this.#completeIfDone();
  }

  // ── To the local connection ──

  #consumed(bytes: number): void {
    if (this.#isClosed) return;
    const due = this.#received.recordConsumed(bytes);
    this.#grant(due);
    if (this.#hasFramesEnded && this.#socket.writableLength === 0)
      this.#grant(this.#received.takeGrant());
  }

  #grant(bytes: number): void {
    if (bytes === 0) return;
    this.#options.send((writer) => writer.writeCredit(this.#options.id, bytes));
  }

  #socketClosed(hadError: boolean, problem: string): void {
    if (this.#isClosed) return;
    const { readableEnded, writableFinished } = this.#socket;
    this.#isSocketDone = !hadError && readableEnded && writableFinished;
    if (this.#isSocketDone) return this.#completeIfDone();
    this.#isClosed = true;
    this.#options.onBreak(RESET.originFailed, problem);
  }

  /** The local connection may be closed while the last of its bytes wait for credit. */
  #completeIfDone(): void {
    if (this.#isClosed || !this.#isSocketDone || !this.#isEndSent) return;
    this.#isClosed = true;
    this.#options.onComplete();
  }
}
