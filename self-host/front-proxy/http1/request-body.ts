/**
 * The body of a request as it is forwarded to workerd. workerd refuses extensions of chunks, could read trailers
 * differently, and serves no other connection while it reads chunks that have arrived: hundreds of thousands of one
 * byte take it seconds. So the data of all chunks that arrive together is forwarded as one chunk, without extensions
 * and trailers, also when others have their turn while it is read.
 */
import { CONTINUE_AFTER_MS } from "../limits.ts";
import { createBodyReader, type BodyReader } from "./message-body.ts";
import type { RequestHead } from "./request-head.ts";

/** workerd never sends it. */
export const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

/**
 * Of the chunked coding besides the data, read before other visitors have their turn: a visitor can send chunks of one byte, or with
 * long extensions.
 */
export const FRAMING_TURN_MAX_BYTES = 16 * 1024;
const LINE_BREAK = Buffer.from("\r\n");
const LAST_CHUNK = Buffer.from("0\r\n\r\n");

interface BodyPart {
  /** The bytes to forward, in order: none while more of those that arrived together have to be read. */
  forward: Uint8Array[];
  /** How many of the bytes were read. If there are more and the body is not complete, they have to wait for a later turn. */
  length: number;
}

export class RequestBody {
  readonly #reader: BodyReader;
  readonly #isChunked: boolean;
  readonly #invitation: NodeJS.Timeout | undefined;
  /** Data of chunks, of which more have arrived. */
  #data: Uint8Array[] = [];

  /** @param invite called if the visitor may wait for it, and nothing of the body arrives for a moment. */
  constructor(head: Pick<RequestHead, "body" | "expectsContinue">, invite: () => void) {
    this.#reader = createBodyReader(head.body, FRAMING_TURN_MAX_BYTES);
    this.#isChunked = head.body === "chunked";
    if (head.expectsContinue) this.#invitation = setTimeout(invite, CONTINUE_AFTER_MS);
  }

  get isComplete(): boolean {
    return this.#reader.isComplete;
  }

  /**
   * @param bytes are changed: the data of their chunks is moved together, which takes no further memory.
   * @returns undefined when the body is malformed.
   */
  read(bytes: Uint8Array): BodyPart | undefined {
    clearTimeout(this.#invitation);
    let start = 0;
    let end = 0;
    const length = this.#reader.read(bytes, (from, to) => {
      if (end === 0) start = end = from;
      if (end !== from) bytes.copyWithin(end, from, to);
      end += to - from;
    });
    if (length === undefined) return undefined;
    if (end > start) this.#data.push(bytes.subarray(start, end));
    const isWaiting = length < bytes.length && !this.isComplete;
    return { forward: isWaiting ? [] : this.#takeData(), length };
  }

  #takeData(): Uint8Array[] {
    const data = this.#data;
    this.#data = [];
    if (!this.#isChunked) return data;
    const bytes = data.reduce((sum, { length }) => sum + length, 0);
    const size = Buffer.from(`${bytes.toString(16)}\r\n`);
    const chunk = bytes > 0 ? [size, ...data, LINE_BREAK] : [];
    return this.isComplete ? [...chunk, LAST_CHUNK] : chunk;
  }
}
