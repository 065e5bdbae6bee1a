/**
 * Sends frames on a WebSocket. Frames share messages: those of one turn always, and under load those of all pending events,
 * because each message costs a system call here and an event at the receiver.
 */
import { WIRE_MESSAGE_MAX_BYTES } from "../../protocol/limits.ts";
import { FrameWriter } from "../../protocol/wire/frames.ts";

/** How much the connection carries: with "heavy", frames wait for those of other pending events. */
type Load = "light" | "heavy";

export class FrameSender {
  readonly #socket: WebSocket;
  readonly #writer = new FrameWriter();
  #isFlushScheduled = false;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  send(write: (writer: FrameWriter) => void, load: Load): void {
    write(this.#writer);
    if (this.#writer.length >= WIRE_MESSAGE_MAX_BYTES / 4) return this.flush();
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    if (load === "heavy") setTimeout(() => this.flush(), 0);
    else queueMicrotask(() => this.flush());
  }

  flush(): void {
    this.#isFlushScheduled = false;
    if (this.#writer.length === 0) return;
    const message = this.#writer.take();
    try {
      this.#socket.send(message); // Copies.
      this.#writer.recycle(message);
    } catch {
      // The socket has closed; its close event ends the streams.
    }
  }

  /** Keeps no more memory than small frames need. */
  freeLargeBuffers(): void {
    this.#writer.freeLargeBuffers();
  }
}
