/** Finds the frames of a WebSocket (RFC 6455 §5.2) in a stream of bytes, without collecting their payloads. */

const HEAD_MAX_BYTES = 14;
const MASK_BYTES = 4;
const FIN = 0x80;
const MASKED = 0x80;
const RSV_AND_OPCODE = 0x7f;

export const OPCODE = {
  continuation: 0,
  text: 1,
  binary: 2,
  close: 8,
  ping: 9,
  pong: 10,
} as const;

export interface FrameHead {
  /** With the reserved bits: above 15 if one of them is set. */
  opcode: number;
  isFinal: boolean;
  payloadBytes: number;
  /** undefined: the payload is not masked. */
  mask: Uint8Array | undefined;
  /** The head as it was received. */
  bytes: Buffer;
}

export interface FrameHandler {
  /** The methods return false to stop reading. */
  onHead(head: FrameHead): boolean;
  /** @param offset of the part within the payload. */
  onPayload(part: Uint8Array, head: FrameHead, offset: number): boolean;
  /** @param end of the frame within the bytes of this call of `read`. */
  onEnd(head: FrameHead, end: number): boolean;
}

export class FrameReader {
  readonly #handler: FrameHandler;
  readonly #headBuffer = Buffer.alloc(HEAD_MAX_BYTES);
  #headLength = 0;
  /** The head of the frame whose payload is being read. */
  #head: FrameHead | undefined;
  #offset = 0;

  constructor(handler: FrameHandler) {
    this.#handler = handler;
  }

  get isBetweenFrames(): boolean {
    return this.#head === undefined && this.#headLength === 0;
  }

  /** How many bytes of an incomplete head are stored. */
  get headLength(): number {
    return this.#headLength;
  }

  /** @returns how many of the bytes were read: fewer when the handler has stopped reading. */
  read(bytes: Uint8Array): number {
    let at = 0;
    while (at < bytes.length) {
      if (this.#head === undefined) {
        this.#headBuffer[this.#headLength] = bytes[at]!;
        this.#headLength += 1;
        at += 1;
        if (this.#headLength < 2 || this.#headLength < this.#getHeadBytes()) continue;
        this.#head = this.#parseHead();
        this.#headLength = 0;
        this.#offset = 0;
        if (!this.#handler.onHead(this.#head)) return at;
      }
      const head = this.#head;
      const part = bytes.subarray(at, at + head.payloadBytes - this.#offset);
      if (part.length > 0 && !this.#handler.onPayload(part, head, this.#offset)) return at;
      this.#offset += part.length;
      at += part.length;
      if (this.#offset < head.payloadBytes) continue;
      this.#head = undefined;
      if (!this.#handler.onEnd(head, at)) return at;
    }
    return at;
  }

  #getHeadBytes(): number {
    const second = this.#headBuffer[1]!;
    const length = second & ~MASKED;
    const lengthBytes = length === 127 ? 8 : length === 126 ? 2 : 0;
    return 2 + lengthBytes + (second & MASKED ? MASK_BYTES : 0);
  }

  #parseHead(): FrameHead {
    const bytes = Buffer.from(this.#headBuffer.subarray(0, this.#headLength));
    const length = bytes[1]! & ~MASKED;
    let payloadBytes = length;
    if (length === 126) payloadBytes = bytes.readUInt16BE(2);
    // Beyond 2^53 a length is not exact, and no message may be as long.
    else if (length === 127) payloadBytes = Number(bytes.readBigUInt64BE(2));
    return {
      opcode: bytes[0]! & RSV_AND_OPCODE,
      isFinal: (bytes[0]! & FIN) !== 0,
      payloadBytes,
      mask: bytes[1]! & MASKED ? bytes.subarray(bytes.length - MASK_BYTES) : undefined,
      bytes,
    };
  }
}

/** A frame to a visitor. @param payload of at most 125 bytes. */
export function buildFrame(opcode: number, payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from([FIN | opcode, payload.length]), payload]);
}

/** A frame to the server, with a mask of zeros (RFC 6455 §5.3). @param payload of at most 125 bytes. */
export function buildMaskedFrame(opcode: number, payload: Uint8Array): Buffer {
  const head = [FIN | opcode, MASKED | payload.length];
  return Buffer.concat([Buffer.from(head), Buffer.alloc(MASK_BYTES), payload]);
}

/**
 * @param offset of the bytes within the payload.
 * @param target gets the result, and has the length of the bytes.
 */
export function unmask(
  bytes: Uint8Array,
  mask: Uint8Array | undefined,
  offset: number,
  target = Buffer.allocUnsafe(bytes.length),
): Buffer {
  for (let i = 0; i < bytes.length; i += 1)
    target[i] = mask ? bytes[i]! ^ mask[(offset + i) & 3]! : bytes[i]!;
  return target;
}
