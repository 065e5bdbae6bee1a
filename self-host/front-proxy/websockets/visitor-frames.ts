/**
 * The frames that a visitor sends on a WebSocket. workerd repairs text that is not UTF-8 instead of closing with 1007,
 * accepts control frames of any size, answers only the last of several pings, and stores incomplete messages without a bound
 * for all of them together. So this checks the frames before workerd gets them.
 */
import { isUtf8 } from "node:buffer";
import { WEBSOCKET_MESSAGE_MAX_BYTES } from "../../../protocol/limits.ts";
import { isSendableCloseCode } from "../../../protocol/websocket-close.ts";
import { FrameReader, OPCODE, unmask, type FrameHandler, type FrameHead } from "./frame-reader.ts";
import type { FrameAllowance } from "./frame-allowance.ts";
import { IncompleteMessage } from "./incomplete-message.ts";
import type { MemoryReservation } from "../../../shared/bounds/source-memory.ts";
import { Utf8Check } from "./utf8-check.ts";

const CONTROL_MAX_BYTES = 125;
const PROTOCOL_ERROR = 1002;
const INVALID_TEXT = 1007;
const MESSAGE_TOO_LARGE = 1009;
const TRY_AGAIN_LATER = 1013;

export interface VisitorFramesEvents {
  /** These bytes go on to the server, in order. They are views of those that are being read. */
  onForward(pieces: readonly Uint8Array[]): void;
  onPing(payload: Buffer): void;
  /**
   * The visitor has violated the protocol. Nothing more is read.
   * @param isBetweenFrames whether the bytes that went on to the server end with a whole frame.
   */
  onViolation(code: number, isBetweenFrames: boolean): void;
}

export class VisitorFrames implements FrameHandler {
  readonly #events: VisitorFramesEvents;
  readonly #allowance: FrameAllowance;
  readonly #incomplete: IncompleteMessage;
  readonly #reader = new FrameReader(this);
  readonly #utf8 = new Utf8Check();
  /** The type of the message that is being received; undefined between two messages. */
  #message: number | undefined;
  /** The payload of that message so far. */
  #messageBytes = 0;
  /** The payload of a control frame, unmasked, so far. */
  #control: Buffer[] = [];
  /** The parts of the bytes that are being read that go on to the server. */
  #pieces: Uint8Array[] = [];
  /** Where the current frame begins in `#pieces`; undefined when a part of it has gone on already. */
  #frameStart: number | undefined;
  /** The visitor has closed, or violated the protocol. */
  #hasEnded = false;

  constructor(
    events: VisitorFramesEvents,
    { reservation, allowance }: { reservation: MemoryReservation; allowance: FrameAllowance },
  ) {
    this.#events = events;
    this.#allowance = allowance;
    this.#incomplete = new IncompleteMessage(reservation);
  }

  /** Whether a data frame may be inserted now. */
  get isBetweenMessages(): boolean {
    return this.#reader.isBetweenFrames && this.#message === undefined && !this.#hasEnded;
  }

  /** @returns how many of the bytes have passed: the others have to wait for the allowance. */
  read(bytes: Uint8Array): number {
    if (this.#hasEnded) return bytes.length;
    const length = this.#reader.read(bytes);
    if (!this.#hasEnded && !this.#incomplete.reserve()) this.#fail(TRY_AGAIN_LATER);
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#frameStart = undefined;
    if (pieces.length > 0) this.#events.onForward(pieces);
    return this.#hasEnded ? bytes.length : length;
  }

  // ── Called by the reader ──

  onHead(head: FrameHead): boolean {
    const { opcode, isFinal, payloadBytes, mask } = head;
    this.#frameStart = this.#pieces.length;
    if (!mask) return this.#fail(PROTOCOL_ERROR);
    const isControl = opcode >= OPCODE.close && opcode <= OPCODE.pong;
    if (isControl) {
      this.#control = [];
      if (!isFinal || payloadBytes > CONTROL_MAX_BYTES) return this.#fail(PROTOCOL_ERROR);
      return true;
    }
    if (opcode === OPCODE.text || opcode === OPCODE.binary) {
      if (this.#message !== undefined) return this.#fail(PROTOCOL_ERROR);
      this.#message = opcode;
    } else if (opcode !== OPCODE.continuation || this.#message === undefined) {
      return this.#fail(PROTOCOL_ERROR);
    }
    if (this.#messageBytes + payloadBytes > WEBSOCKET_MESSAGE_MAX_BYTES) {
      return this.#fail(MESSAGE_TOO_LARGE);
    }
    this.#pieces.push(head.bytes);
    return true;
  }

  onPayload(part: Uint8Array, head: FrameHead, offset: number): boolean {
    const { opcode, mask } = head;
    this.#incomplete.addPayload(part, head);
    if (opcode >= OPCODE.close) {
      this.#control.push(unmask(part, mask, offset));
      return true;
    }
    this.#pieces.push(part);
    this.#messageBytes += part.length;
    if (this.#message !== OPCODE.text) return true;
    return this.#utf8.add(unmaskText(part, mask, offset)) || this.#fail(INVALID_TEXT);
  }

  onEnd(head: FrameHead): boolean {
    this.#incomplete.endFrame(head);
    const isReading = head.opcode >= OPCODE.close ? this.#endControl(head) : this.#endData(head);
    return isReading && this.#allowance.take();
  }

  // ── Inside ──

  #endData({ isFinal }: FrameHead): boolean {
    if (!isFinal) return true;
    const isText = this.#message === OPCODE.text;
    this.#message = undefined;
    this.#messageBytes = 0;
    return !isText || this.#utf8.end() || this.#fail(INVALID_TEXT);
  }

  #endControl({ opcode, bytes, mask }: FrameHead): boolean {
    const payload = Buffer.concat(this.#control);
    if (opcode === OPCODE.ping) {
      this.#events.onPing(payload);
      return true;
    }
    const code = opcode === OPCODE.close ? findInvalidClose(payload) : undefined;
    if (code !== undefined) return this.#fail(code);
    this.#pieces.push(bytes, unmask(payload, mask, 0));
    // Nothing may follow a Close (RFC 6455 §5.5.1).
    this.#hasEnded = opcode === OPCODE.close;
    return !this.#hasEnded;
  }

  /** @returns false. */
  #fail(code: number): boolean {
    this.#hasEnded = true;
    this.#incomplete.giveUp();
    const isBetweenFrames = this.#frameStart !== undefined;
    if (this.#frameStart !== undefined) this.#pieces.length = this.#frameStart;
    const pieces = this.#pieces;
    this.#pieces = [];
    if (pieces.length > 0) this.#events.onForward(pieces);
    this.#events.onViolation(code, isBetweenFrames);
    return false;
  }
}

/** Reused for all texts, so that a text leaves no garbage. */
let textBuffer = Buffer.alloc(0);

/** @returns the bytes, valid until the next call. */
function unmaskText(part: Uint8Array, mask: Uint8Array | undefined, offset: number): Buffer {
  if (textBuffer.length < part.length) textBuffer = Buffer.allocUnsafeSlow(part.length);
  return unmask(part, mask, offset, textBuffer.subarray(0, part.length));
}

/** @returns the code that answers a Close that RFC 6455 §5.5.1 does not allow. */
function findInvalidClose(payload: Buffer): number | undefined {
  if (payload.length === 0) return undefined;
  if (payload.length === 1 || !isSendableCloseCode(payload.readUInt16BE())) return PROTOCOL_ERROR;
  return isUtf8(payload.subarray(2)) ? undefined : INVALID_TEXT;
}
