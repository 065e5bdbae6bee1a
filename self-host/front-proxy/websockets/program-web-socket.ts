/**
 * The WebSocket of a program: an agent or another caller that the API has accepted. The bytes pass unchanged, but workerd gets
 * neither more frames at a time nor longer incomplete messages than the limits allow. After a Close in both directions the
 * connection ends (RFC 6455 §7.1.1): workerd keeps that of an object that hibernates open for ten seconds more.
 */
import { FrameReader, OPCODE, type FrameHandler, type FrameHead } from "./frame-reader.ts";
import { IncompleteMessage } from "./incomplete-message.ts";
import type { OpenWebSocket, WebSocketLimits, WebSocketOptions } from "./open-web-socket.ts";

export class ProgramWebSocket implements OpenWebSocket, FrameHandler {
  readonly kind = "program";
  readonly #options: WebSocketOptions;
  readonly #message: IncompleteMessage;
  readonly #reader = new FrameReader(this);
  readonly #fromServer = new FrameReader({
    onHead: () => true,
    onPayload: () => true,
    onEnd: ({ opcode }) => {
      this.#hasServerClosed ||= opcode === OPCODE.close;
      return true;
    },
  });
  #hasProgramClosed = false;
  #hasServerClosed = false;

  constructor(options: WebSocketOptions) {
    this.#options = options;
    this.#message = new IncompleteMessage(options.reservation);
  }

  get limits(): WebSocketLimits {
    return this.#options;
  }

  receiveFromVisitor(bytes: Uint8Array): number {
    const length = this.#reader.read(bytes);
    if (!this.#message.reserve()) {
      this.#options.reset();
      return length;
    }
    this.#options.writeToServer([bytes.subarray(0, length)]);
    this.#endIfClosed();
    return length;
  }

  receiveFromServer(bytes: Uint8Array, onWritten: () => void): void {
    this.#fromServer.read(bytes);
    this.#options.writeToVisitor(bytes, onWritten);
    this.#endIfClosed();
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
    this.#hasProgramClosed ||= head.opcode === OPCODE.close;
    return this.#options.allowance.take();
  }

  #endIfClosed(): void {
    if (this.#hasProgramClosed && this.#hasServerClosed) this.#options.end();
  }
}
