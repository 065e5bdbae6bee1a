/** Splits the messages of the wire into their frames. */
import { FRAME_HEADER_BYTES, FRAME_MAX_BYTES, type Frame } from "./frames.ts";

/** Reads the frames of one message, one after the other. */
export class MessageReader {
  readonly #message: Uint8Array;
  readonly #view: DataView;
  #at = 0;

  constructor(message: Uint8Array) {
    this.#message = message;
    this.#view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  }

  /** The length of the whole message. */
  get byteLength(): number {
    return this.#message.byteLength;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#message.byteLength;
  }

  /** @returns null when the rest of the message does not begin with a whole frame within the limits. */
  read(): Frame | null {
    const at = this.#at;
    const start = at + FRAME_HEADER_BYTES;
    if (start > this.#message.byteLength) return null;
    const length = this.#view.getUint32(at + 6);
    if (length > FRAME_MAX_BYTES || length > this.#message.byteLength - start) return null;
    this.#at = start + length;
    return {
      type: this.#view.getUint8(at),
      flags: this.#view.getUint8(at + 1),
      stream: this.#view.getUint32(at + 2),
      payload: this.#message.subarray(start, this.#at),
    };
  }
}

/**
 * Splits a message into its frames.
 * @returns false when the message is not a sequence of whole frames within the limits; the frames before the error have
 * been delivered.
 */
export function readFrames(message: Uint8Array, deliver: (frame: Frame) => void): boolean {
  const reader = new MessageReader(message);
  while (!reader.isAtEnd) {
    const frame = reader.read();
    if (!frame) return false;
    deliver(frame);
  }
  return true;
}
