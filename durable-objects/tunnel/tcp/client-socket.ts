/** The WebSocket of a client of `underpass connect`. */
import {
  CLIENT_STREAM,
  FRAME,
  type FrameWriter,
  type ResetCode,
} from "../../../protocol/wire/frames.ts";
import { closeQuietly } from "../../websockets.ts";
import { FrameSender } from "../frame-sender.ts";

export class ClientSocket {
  readonly #socket: WebSocket;
  readonly #sender: FrameSender;

  constructor(socket: WebSocket) {
    this.#socket = socket;
    this.#sender = new FrameSender(socket);
  }

  send(write: (writer: FrameWriter) => void): void {
    this.#sender.send(write, "light");
  }

  /** Ends the stream early, and the connection with it. */
  reset(code: ResetCode, reason: string): void {
    this.send((writer) => writer.writeCodeAndText(FRAME.reset, CLIENT_STREAM, code, reason));
    this.close();
  }

  close(): void {
    this.#sender.flush();
    closeQuietly(this.#socket, 1000, "");
  }
}
