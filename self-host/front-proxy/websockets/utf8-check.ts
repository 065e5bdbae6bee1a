import { isUtf8 } from "node:buffer";

const SEQUENCE_MAX_BYTES = 4;

/** Checks whether a text that arrives in parts is UTF-8. */
export class Utf8Check {
  /** The beginning of a sequence whose rest is still missing. */
  #rest = Buffer.alloc(0);

  /** @returns false when the text is not UTF-8. */
  add(part: Buffer): boolean {
    const bytes = this.#rest.length > 0 ? Buffer.concat([this.#rest, part]) : part;
    const complete = bytes.length - countIncomplete(bytes);
    this.#rest = Buffer.from(bytes.subarray(complete));
    return isUtf8(bytes.subarray(0, complete));
  }

  /** The text is complete, and another one may begin. @returns false when its last sequence is not. */
  end(): boolean {
    const isComplete = this.#rest.length === 0;
    this.#rest = Buffer.alloc(0);
    return isComplete;
  }
}

/** @returns how many bytes at the end begin a sequence that is longer. */
function countIncomplete(bytes: Buffer): number {
  for (let count = 1; count < SEQUENCE_MAX_BYTES && count <= bytes.length; count += 1) {
    const byte = bytes[bytes.length - count]!;
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;
    const needed = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : SEQUENCE_MAX_BYTES;
    return count < needed ? count : 0;
  }
  return 0;
}
