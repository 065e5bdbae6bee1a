/** Finds the end of the body of a request or a response, so that the head of the next one is recognized. */

/** The length of a body in bytes, or that it is in the chunked coding. */
export type BodyLength = number | "chunked";

/** Called with the place of data of the body, within the bytes that are being read. */
type HandleData = (start: number, end: number) => void;

export interface BodyReader {
  readonly isComplete: boolean;
  /**
   * @param onData called with the data, in order.
   * @returns how many of the bytes belong to the body, or undefined when it is malformed. There may be more in the bytes if
   * the body is not complete.
   */
  read(bytes: Uint8Array, onData?: HandleData): number | undefined;
}

/** @param framingMaxBytes how much of the chunked coding besides the data is read at a time. */
export function createBodyReader(length: BodyLength, framingMaxBytes = Infinity): BodyReader {
  return length === "chunked" ? new ChunkedBody(framingMaxBytes) : new FixedLengthBody(length);
}

class FixedLengthBody implements BodyReader {
  #remaining: number;

  constructor(length: number) {
    this.#remaining = length;
  }

  get isComplete(): boolean {
    return this.#remaining === 0;
  }

  read(bytes: Uint8Array, onData?: HandleData): number {
    const length = Math.min(bytes.length, this.#remaining);
    this.#remaining -= length;
    onData?.(0, length);
    return length;
  }
}

const CR = 0x0d;
const LF = 0x0a;
const SEMICOLON = 0x3b;
const TAB = 0x09;
/** A chunk's size has at most 12 hexadecimal digits: 2^48 bytes. */
const SIZE_DIGITS_MAX = 12;
/** The extensions of one chunk, and the trailers of one body. Neither has a use here (RFC 9112 §7.1.1). */
const IGNORED_MAX_BYTES = 4 * 1024;

type ChunkState =
  | "size"
  | "extension"
  | "sizeEnd"
  | "data"
  | "dataEnd"
  | "dataEndLine"
  | "lineStart"
  | "trailer"
  | "trailerEnd"
  | "end"
  | "complete";

/** The chunked coding of RFC 9112 §7.1. Extensions and trailers are read, and ignored (§7.1.1, §7.1.2). */
class ChunkedBody implements BodyReader {
  #state: ChunkState = "size";
  #size = 0;
  #digits = 0;
  #ignoredBytes = 0;
  readonly #framingMaxBytes: number;

  constructor(framingMaxBytes: number) {
    this.#framingMaxBytes = framingMaxBytes;
  }

  get isComplete(): boolean {
    return this.#state === "complete";
  }

  read(bytes: Uint8Array, onData?: HandleData): number | undefined {
    let at = 0;
    let framingBytes = 0;
    while (at < bytes.length && this.#state !== "complete") {
      if (framingBytes >= this.#framingMaxBytes) break;
      if (this.#state !== "data") {
        if (!this.#step(bytes[at]!)) return undefined;
        at += 1;
        framingBytes += 1;
        continue;
      }
      const end = Math.min(bytes.length, at + this.#size);
      onData?.(at, end);
      this.#size -= end - at;
      at = end;
      if (this.#size === 0) this.#state = "dataEnd";
    }
    return at;
  }

  /** @returns false when the byte is not allowed here. */
  #step(byte: number): boolean {
    switch (this.#state) {
      case "size":
        return this.#readSize(byte);
      case "extension":
        if (byte !== CR) return this.#ignore(byte);
        this.#state = "sizeEnd";
        return true;
      case "sizeEnd":
        this.#state = this.#size > 0 ? "data" : "lineStart";
        this.#digits = 0;
        this.#ignoredBytes = 0;
        return byte === LF;
      case "dataEnd":
        this.#state = "dataEndLine";
        return byte === CR;
      case "dataEndLine":
        this.#state = "size";
        return byte === LF;
      case "lineStart":
        this.#state = byte === CR ? "end" : "trailer";
        return byte === CR || this.#ignore(byte);
      case "trailer":
        if (byte === CR) this.#state = "trailerEnd";
        return byte === CR || this.#ignore(byte);
      case "trailerEnd":
        this.#state = "lineStart";
        return byte === LF;
      case "end":
        this.#state = "complete";
        return byte === LF;
      case "data":
      case "complete":
        return false;
    }
  }

  #readSize(byte: number): boolean {
    const digit = parseHexDigit(byte);
    if (digit >= 0) {
      this.#digits += 1;
      this.#size = this.#size * 16 + digit;
      return this.#digits <= SIZE_DIGITS_MAX;
    }
    if (this.#digits === 0) return false;
    this.#state = byte === CR ? "sizeEnd" : "extension";
    return byte === CR || byte === SEMICOLON;
  }

  #ignore(byte: number): boolean {
    this.#ignoredBytes += 1;
    const isText = byte === TAB || (byte >= 0x20 && byte !== 0x7f);
    return isText && this.#ignoredBytes <= IGNORED_MAX_BYTES;
  }
}

function parseHexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}
