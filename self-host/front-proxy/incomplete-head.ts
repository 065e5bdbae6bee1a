/** Collects the bytes of a request's head until it is complete. */
import { INCOMPLETE_HEADS_MAX_BYTES } from "./limits.ts";
import { HEAD_MAX_BYTES } from "./request-head.ts";

const HEAD_END = Buffer.from("\r\n\r\n");
const CR = 0x0d;
const LF = 0x0a;

/** Of all connections of this process. */
let totalBytes = 0;

export interface CompleteHead {
  /** Up to and including the empty line, one character for each byte. */
  text: string;
  /** What follows the head. */
  rest: Uint8Array;
}

export class IncompleteHead {
  #bytes: Buffer | undefined;
  /** The head is larger than one head may be, or than the memory that is left for all of them. */
  isTooLarge = false;

  /** @returns undefined while the head is incomplete. */
  add(bytes: Uint8Array): CompleteHead | undefined {
    const fresh = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    const known = this.#bytes;
    // An empty line before a request is ignored (RFC 9112 §2.2).
    const start = known === undefined ? countLineBreaks(fresh) : 0;
    const all = known === undefined ? fresh.subarray(start) : Buffer.concat([known, fresh]);
    const searchFrom = Math.max(0, (known?.length ?? 0) - HEAD_END.length);
    const end = all.indexOf(HEAD_END, searchFrom);
    const length = end < 0 ? all.length : end + HEAD_END.length;
    if (length > HEAD_MAX_BYTES) {
      this.isTooLarge = true;
      return undefined;
    }
    if (end < 0) {
      this.#store(known === undefined ? Buffer.from(all) : all);
      return undefined;
    }
    const text = all.toString("latin1", 0, length);
    const rest = fresh.subarray(fresh.length - (all.length - length));
    this.clear();
    return { text, rest };
  }

  clear(): void {
    totalBytes -= this.#bytes?.length ?? 0;
    this.#bytes = undefined;
  }

  #store(bytes: Buffer): void {
    this.clear();
    if (totalBytes + bytes.length > INCOMPLETE_HEADS_MAX_BYTES) {
      this.isTooLarge = true;
      return;
    }
    totalBytes += bytes.length;
    this.#bytes = bytes;
  }
}

function countLineBreaks(bytes: Buffer): number {
  let count = 0;
  while (bytes[count] === CR || bytes[count] === LF) count += 1;
  return count;
}
