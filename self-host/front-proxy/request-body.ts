/** Finds the end of a request's body, so that the head of the next request is recognized. */

/** Where a body ends within bytes that were read. */
export interface BodyPart {
  /** The bytes to forward, in order. */
  forward: Uint8Array[];
  /** How many of the bytes belong to the body. */
  length: number;
}

export interface BodyReader {
  readonly isComplete: boolean;
  /** @returns undefined when the body is malformed. */
  read(bytes: Uint8Array): BodyPart | undefined;
}

export function createBodyReader(body: number | "chunked"): BodyReader {
  return body === "chunked" ? new ChunkedBody() : new CountedBody(body);
}

class CountedBody implements BodyReader {
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get isComplete(): boolean {
    return this.#left === 0;
  }

  read(bytes: Uint8Array): BodyPart {
    const length = Math.min(bytes.length, this.#left);
    this.#left -= length;
    return { forward: [bytes.subarray(0, length)], length };
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

/**
 * The chunked coding of RFC 9112 §7.1. Neither extensions nor trailers are forwarded, which §7.1.1 and §7.1.2 allow:
 * workerd refuses extensions, and could read trailers differently.
 */
class ChunkedBody implements BodyReader {
  #state: ChunkState = "size";
  #size = 0;
  #digits = 0;
  #ignored = 0;
  #isIgnoring = false;

  get isComplete(): boolean {
    return this.#state === "complete";
  }

  read(bytes: Uint8Array): BodyPart | undefined {
    const forward: Uint8Array[] = [];
    let from = this.#isIgnoring ? -1 : 0;
    let at = 0;
    while (at < bytes.length && this.#state !== "complete") {
      if (this.#state === "data") {
        const length = Math.min(bytes.length - at, this.#size);
        this.#size -= length;
        at += length;
        if (this.#size === 0) this.#state = "dataEnd";
        continue;
      }
      const wasIgnoring = this.#isIgnoring;
      if (!this.#step(bytes[at]!)) return undefined;
      if (this.#isIgnoring && !wasIgnoring) {
        forward.push(bytes.subarray(from, at));
        from = -1;
      } else if (wasIgnoring && !this.#isIgnoring) from = at;
      at += 1;
    }
    if (from >= 0 && at > from) forward.push(bytes.subarray(from, at));
    return { forward, length: at };
  }

  /** @returns false when the byte is not allowed here. */
  #step(byte: number): boolean {
    switch (this.#state) {
      case "size":
        return this.#readSize(byte);
      case "extension":
        if (byte !== CR) return this.#ignore(byte);
        this.#state = "sizeEnd";
        this.#isIgnoring = false;
        return true;
      case "sizeEnd":
        this.#state = this.#size > 0 ? "data" : "lineStart";
        this.#digits = 0;
        this.#ignored = 0;
        return byte === LF;
      case "dataEnd":
        this.#state = "dataEndLine";
        return byte === CR;
      case "dataEndLine":
        this.#state = "size";
        return byte === LF;
      case "lineStart":
        this.#isIgnoring = byte !== CR;
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
    this.#isIgnoring = byte !== CR;
    this.#state = byte === CR ? "sizeEnd" : "extension";
    return byte === CR || byte === SEMICOLON;
  }

  #ignore(byte: number): boolean {
    this.#ignored += 1;
    const isText = byte === TAB || (byte >= 0x20 && byte !== 0x7f);
    return isText && this.#ignored <= IGNORED_MAX_BYTES;
  }
}

function parseHexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30;
  const lower = byte | 0x20;
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x61 + 10 : -1;
}
