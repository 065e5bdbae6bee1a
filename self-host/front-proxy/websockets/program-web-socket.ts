/**
 * The WebSocket of a program: an agent or another caller that the API has accepted. The bytes pass unchanged, but workerd gets
 * neither more frames at a time nor longer incomplete messages than the limits allow.
 */
import { FrameReader, type FrameHandler, type FrameHead } from "./frame-reader.ts";
import { IncompleteMessage } from "./incomplete-message.ts";
import type { OpenWebSocket, WebSocketOptions } from "./open-web-socket.ts";

export class ProgramWebSocket implements OpenWebSocket, FrameHandler {
  readonly kind = "program";
  readonly #options: WebSocketOptions;
  readonly #message: IncompleteMessage;
  readonly #reader = new FrameReader(this);

  constructor(options: WebSocketOptions) {
    this.#options = options;
    this.#message = new IncompleteMessage(options.reservation);
  }

  receiveFromVisitor(bytes: Uint8Array): number {
    const length = this.#reader.read(bytes);
    if (this.#message.reserve()) this.#options.writeToServer([bytes.subarray(0, length)]);
    else this.#options.reset();
    return length;
  }

  receiveFromServer(bytes: Uint8Array, onWritten: () => void): void {
    this.#options.writeToVisitor(bytes, onWritten);
  }

  onHead(): boolean {
    return true;
  }

  onPayload(part: Uint8Array, head: FrameHead): boolean {
    this.#message.addPayload(part, head);
    return true;
  }

  onEnd(head: FrameHead): boolean {
    this.#message.endFrame(head);
    return this.#options.allowance.take();
  }
}
