/** Collects the bytes of a request's head until it is complete. */
import { BoundedBuffer } from "../../../shared/bounds/bounded-buffer.ts";
import { toBuffer } from "./buffers.ts";
import { INCOMPLETE_HEADS_MAX_BYTES } from "../limits.ts";
import { HEAD_MAX_BYTES } from "./request-head.ts";

const HEAD_END = Buffer.from("\r\n\r\n");
const CR = 0x0d;
const LF = 0x0a;
/** The type of the first record of a TLS connection (RFC 8446 §5.1). */
const TLS_HANDSHAKE = 0x16;

/** More than one read of a socket. */
const READ_MAX_BYTES = 256 * 1024;

/** The size of the incomplete heads of all connections of this process. */
let totalBytes = 0;

interface CompleteHead {
  /** Up to and including the empty line, one character for each byte; or bytes that can't become a head. */
  text: string;
  /** The bytes after the head. */
  rest: Uint8Array;
}

export class HeadBuffer {
  #buffer: BoundedBuffer | undefined;
  /** The head is larger than one head may be, or than the memory that is left for all of them. */
  isTooLarge = false;

  /** @returns undefined while the head is incomplete. */
  add(bytes: Uint8Array): CompleteHead | undefined {
    const fresh = toBuffer(bytes);
    const known = this.#buffer?.bytes.length ?? 0;
    // Most heads arrive whole, and are read where they are. An empty line before a request is ignored (RFC 9112 §2.2).
    const all = this.#buffer ? this.#append(fresh) : fresh.subarray(countLineBreaks(fresh));
    if (all === undefined) return undefined;
    // A TLS client waits for an answer: it is refused now, not only when the time for a head is over.
    if (!this.#buffer && all[0] === TLS_HANDSHAKE)
      return { text: all.toString("latin1"), rest: fresh.subarray(fresh.length) };
    const end = all.indexOf(HEAD_END, Math.max(0, known - HEAD_END.length));
    const length = end < 0 ? all.length : end + HEAD_END.length;
    if (length > HEAD_MAX_BYTES) return this.#giveUp();
    if (end < 0) {
      if (!this.#buffer) this.#append(all);
      return undefined;
    }
    const text = all.toString("latin1", 0, length);
    const rest = fresh.subarray(fresh.length - (all.length - length));
    this.clear();
    return { text, rest };
  }

  clear(): void {
    totalBytes -= this.#buffer?.bytes.length ?? 0;
    this.#buffer?.clear();
    this.#buffer = undefined;
  }

  /** @returns all bytes so far, or undefined when there is no room. */
  #append(bytes: Buffer): Buffer | undefined {
    // The rest of a read may follow the head.
    this.#buffer ??= new BoundedBuffer(HEAD_MAX_BYTES + READ_MAX_BYTES);
    const hasRoom = totalBytes + bytes.length <= INCOMPLETE_HEADS_MAX_BYTES;
    if (!hasRoom || !this.#buffer.append(bytes)) return this.#giveUp();
    totalBytes += bytes.length;
    return toBuffer(this.#buffer.bytes);
  }

  /** Releases the memory at once: the connection may stay open until the visitor has read its refusal. */
  #giveUp(): undefined {
    this.isTooLarge = true;
    this.clear();
  }
}

function countLineBreaks(bytes: Buffer): number {
  let count = 0;
  while (bytes[count] === CR || bytes[count] === LF) count += 1;
  return count;
}
