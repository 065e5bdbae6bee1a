/**
 * A visitor's WebSocket in the front proxy. Bytes pass unchanged, with three exceptions: a visitor who violates the
 * protocol is disconnected, each ping is answered here, and the bytes that the visitor has read are acknowledged to the
 * tunnel's object, which has no other way to know them. The visitor sees nothing of the acknowledgements.
 */
import {
  ACKNOWLEDGEMENT_MIN_BYTES,
  ACKNOWLEDGEMENT_MIN_MESSAGES,
  formatAcknowledgement,
} from "../../../protocol/front-proxy/acknowledgements.ts";
import {
  buildFrame,
  buildMaskedFrame,
  FrameReader,
  OPCODE,
  type FrameHandler,
  type FrameHead,
} from "./frame-reader.ts";
import type { OpenWebSocket, WebSocketLimits, WebSocketOptions } from "./open-web-socket.ts";
import { VisitorFrames, type VisitorFramesEvents } from "./visitor-frames.ts";

/**
 * Pongs that wait for the end of a frame or for a visitor who does not read. Then only the newest are sent (RFC 6455
 * §5.5.3).
 */
const PONGS_MAX = 64;

interface VisitorWebSocketOptions extends WebSocketOptions {
  /** Random: acknowledges what the visitor has read. */
  acknowledgementKey: string;
}

export class VisitorWebSocket implements OpenWebSocket, FrameHandler, VisitorFramesEvents {
  readonly kind = "visitor";
  readonly #options: VisitorWebSocketOptions;
  readonly #fromVisitor: VisitorFrames;
  readonly #fromServer = new FrameReader(this);
  #pongs: Buffer[] = [];
  /** Payload bytes of messages in the bytes of the server that are being read. */
  #payloadBytes = 0;
  /** How many messages end in them. */
  #messages = 0;
  /** Where the last frame of these bytes ends; 0: nowhere in them. */
  #lastEnd = 0;
  #unacknowledged = { bytes: 0, messages: 0 };

  constructor(options: VisitorWebSocketOptions) {
    this.#options = options;
    this.#fromVisitor = new VisitorFrames(this, options);
  }

  get limits(): WebSocketLimits {
    return this.#options;
  }

  receiveFromVisitor(bytes: Uint8Array): number {
    const length = this.#fromVisitor.read(bytes);
    this.#acknowledge();
    return length;
  }

  receiveFromServer(bytes: Uint8Array, onWritten: () => void): void {
    this.#payloadBytes = 0;
    this.#messages = 0;
    this.#lastEnd = 0;
    this.#fromServer.read(bytes);
    const payloadBytes = this.#payloadBytes;
    const messages = this.#messages;
    const { writeToVisitor } = this.#options;
    let rest = bytes;
    if (this.#pongs.length > 0 && this.#lastEnd > 0) {
      writeToVisitor(bytes.subarray(0, this.#lastEnd));
      this.#writePongs();
      rest = bytes.subarray(this.#lastEnd);
    }
    writeToVisitor(rest, () => {
      this.#unacknowledged.bytes += payloadBytes;
      this.#unacknowledged.messages += messages;
      this.#acknowledge();
      this.#answerPings();
      onWritten();
    });
  }

  // ── From the visitor ──

  onForward(pieces: readonly Uint8Array[]): void {
    this.#options.writeToServer(pieces);
  }

  onPing(payload: Buffer): void {
    this.#pongs.push(buildFrame(OPCODE.pong, payload));
    if (this.#pongs.length > PONGS_MAX) this.#pongs.shift();
    this.#answerPings();
  }

  onViolation(code: number, isBetweenFrames: boolean): void {
    const payload = Buffer.alloc(2);
    payload.writeUInt16BE(code);
    // The object closes the local server's connection with the same code, and answers.
    if (isBetweenFrames)
      return this.#options.writeToServer([buildMaskedFrame(OPCODE.close, payload)]);
    if (this.#fromServer.isBetweenFrames)
      this.#options.writeToVisitor(buildFrame(OPCODE.close, payload));
    this.#options.end();
  }

  // ── From the server ──

  onHead(): boolean {
    return true;
  }

  onPayload(part: Uint8Array, { opcode }: FrameHead): boolean {
    if (opcode < OPCODE.close) this.#payloadBytes += part.length;
    return true;
  }

  onEnd({ opcode, isFinal }: FrameHead, end: number): boolean {
    if (opcode < OPCODE.close && isFinal) this.#messages += 1;
    this.#lastEnd = end;
    return true;
  }

  // ── Inside ──

  #answerPings(): void {
    if (this.#fromServer.isBetweenFrames && !this.#options.hasUnsentBytes()) this.#writePongs();
  }

  #writePongs(): void {
    if (this.#pongs.length === 0) return;
    this.#options.writeToVisitor(Buffer.concat(this.#pongs));
    this.#pongs = [];
  }

  /** Between two messages only: an acknowledgement is a message too. */
  #acknowledge(): void {
    const { bytes, messages } = this.#unacknowledged;
    if (bytes < ACKNOWLEDGEMENT_MIN_BYTES && messages < ACKNOWLEDGEMENT_MIN_MESSAGES) return;
    if (!this.#fromVisitor.isBetweenMessages) return;
    const text = formatAcknowledgement(this.#options.acknowledgementKey, this.#unacknowledged);
    this.#unacknowledged = { bytes: 0, messages: 0 };
    this.#options.writeToServer([buildMaskedFrame(OPCODE.text, Buffer.from(text))]);
  }
}
