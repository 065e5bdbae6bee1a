/**
 * Joins a local TCP connection with a stream of frames (docs/protocols/agent-protocol.md): `data` both ways, with
 * credit end to end. An end of either side (FIN, flag `end`) ends that direction alone; a reset of one side resets the
 * other.
 */
import type { Socket } from "node:net";
import { ReceiveWindow, type SendWindows } from "../../protocol/wire/flow-control.ts";
import {
  FLAG,
  FRAME,
  RESET,
  type Frame,
  type FrameWriter,
  type ResetCode,
} from "../../protocol/wire/frames.ts";
import { FRAME_DATA_MAX_BYTES, STREAM_WINDOW_BYTES } from "../../protocol/limits.ts";
import { setReceiver } from "../../sockets/socket-reader.ts";
import { reset } from "../../sockets/splice.ts";
import { watchUnreadSocket } from "../../sockets/unread-socket.ts";

interface FrameSpliceOptions {
  /** The id of the frames' stream. */
  id: number;
  windows: SendWindows;
  /** The program that the local connection leads to, for messages: `the local server`. */
  localEnd: string;
  send(write: (writer: FrameWriter) => void): void;
  /** Both directions have ended, and all bytes are delivered. */
  onComplete(): void;
  /** The local connection failed; the caller resets the stream. `onComplete` is not called afterwards. */
  onBreak(code: ResetCode, reason: string): void;
}

export class FrameSplice {
  /** Bytes received as frames, and from the local connection. */
  bytesFromFrames = 0;
  bytesFromSocket = 0;
  readonly #socket: Socket;
  readonly #options: FrameSpliceOptions;
  readonly #received = new ReceiveWindow(STREAM_WINDOW_BYTES);
  /** Bytes that were read and wait for credit; reading is paused meanwhile. */
  #unsent: Uint8Array = new Uint8Array();
  /** The direction from the local connection to the frames: a local end is sent after the last bytes. */
  #toFrames: "open" | "ending" | "ended" = "open";
  /** The direction from the frames to the local connection. */
  #toSocket: "open" | "ended" = "open";
  /** `socket_closed`: the local connection is closed cleanly, but its last bytes may wait for credit. */
  #state: "open" | "socket_closed" | "closed" = "open";

  /** @param socket paused and made with `allowHalfOpen`; it may still be connecting. */
  constructor(socket: Socket, options: FrameSpliceOptions) {
    this.#socket = socket;
    this.#options = options;
    setReceiver(socket, (bytes) => this.#read(bytes));
    watchUnreadSocket(socket, () => this.#unsent.length > 0);
    socket.on("end", () => {
      this.#toFrames = "ending";
      if (this.#unsent.length === 0) this.#sendEnd();
    });
    // Its error names only the failed call: the program at the other end has reset the connection.
    socket.on("error", () => undefined);
    socket.once("close", (hadError) => this.#handleSocketClose(hadError));
    if (socket.destroyed) queueMicrotask(() => this.#handleSocketClose(true));
  }

  /** Starts reading the local connection. */
  start(): void {
    this.#socket.resume();
  }

  /** @returns false when the frame violates the protocol. */
  receive(frame: Frame): boolean {
    if (this.#state === "closed") return true;
    if (frame.type !== FRAME.data || this.#toSocket === "ended") return false;
    const { length } = frame.payload;
    if (!this.#received.recordReceived(length)) return false;
    this.bytesFromFrames += length;
    const isLast = (frame.flags & FLAG.end) !== 0;
    if (isLast) {
      this.#toSocket = "ended";
      this.#received.end();
    }
    if (length > 0)
      this.#socket.write(frame.payload, (error) => error || this.#recordConsumed(length));
    if (isLast) this.#socket.end();
    return true;
  }

  /** The other end reset the stream, or its connection was lost. */
  abort(): void {
    if (this.#state === "closed") return;
    this.#state = "closed";
    reset(this.#socket);
  }

  // ── From the local connection ──

  #read(bytes: Uint8Array): boolean {
    this.bytesFromSocket += bytes.length;
    this.#unsent = bytes;
    return this.#sendAvailable();
  }

  /** @returns whether everything was sent. Otherwise sending and reading resume when there is credit. */
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
      // The writer copies the bytes before this returns.
      this.#options.send((writer) => writer.writeData(id, part));
    }
    return true;
  }

  #resumeSending(): void {
    if (this.#state === "closed" || !this.#sendAvailable()) return;
    if (this.#toFrames === "ending") this.#sendEnd();
    else this.#socket.resume();
  }

  #sendEnd(): void {
    if (this.#state === "closed") return;
    const { id, windows } = this.#options;
    this.#options.send((writer) => writer.writeBytes(FRAME.data, FLAG.end, id, new Uint8Array()));
    windows.end(id);
    this.#toFrames = "ended";
    this.#completeIfDone();
  }

  // ── To the local connection ──

  #recordConsumed(bytes: number): void {
    if (this.#state === "closed") return;
    const due = this.#received.recordConsumed(bytes);
    this.#sendCredit(due);
    if (this.#toSocket === "ended" && this.#socket.writableLength === 0)
      this.#sendCredit(this.#received.takeCredit());
  }

  #sendCredit(bytes: number): void {
    if (bytes === 0) return;
    this.#options.send((writer) => writer.writeCredit(this.#options.id, bytes));
  }

  #handleSocketClose(hadError: boolean): void {
    if (this.#state === "closed") return;
    const { readableEnded, writableFinished } = this.#socket;
    if (!hadError && readableEnded && writableFinished) {
      this.#state = "socket_closed";
      return this.#completeIfDone();
    }
    this.#state = "closed";
    this.#options.onBreak(RESET.originFailed, `${this.#options.localEnd} cut the connection`);
  }

  #completeIfDone(): void {
    if (this.#state !== "socket_closed" || this.#toFrames !== "ended") return;
    this.#state = "closed";
    this.#options.onComplete();
  }
}
