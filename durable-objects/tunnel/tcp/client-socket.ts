/** The WebSocket of a client of `underpass connect`. Frames of one turn share a message. */
import {
  CLIENT_STREAM,
  FRAME,
  FrameWriter,
  type ResetCode,
} from "../../../protocol/wire/frames.ts";
import { WIRE_MESSAGE_MAX_BYTES } from "../../../protocol/limits.ts";
import { closeQuietly } from "../../close-quietly.ts";

export class ClientSocket {
  readonly #socket: WebSocket;
  readonly #writer = new FrameWriter();
  #isFlushScheduled = false;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  send(write: (writer: FrameWriter) => void): void {
    write(this.#writer);
    if (this.#writer.length >= WIRE_MESSAGE_MAX_BYTES / 4) return this.#flush();
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    queueMicrotask(() => this.#flush());
  }

  /** Ends the stream early, and the connection with it. */
  reset(code: ResetCode, reason: string): void {
    this.send((writer) => writer.writeCodeAndText(FRAME.reset, CLIENT_STREAM, code, reason));
    this.close();
  }

  close(): void {
    this.#flush();
    closeQuietly(this.#socket, 1000, "");
  }

  #flush(): void {
    this.#isFlushScheduled = false;
    if (this.#writer.length === 0) return;
    const message = this.#writer.take();
    try {
      this.#socket.send(message); // Copies.
      this.#writer.recycle(message);
    } catch {
      // The socket has closed; the close event ends the stream.
    }
  }
}
