/**
 * Bounds the memory that a tunnel's object holds for others: bytes of requests, responses and messages that a slow
 * agent or a slow visitor has not taken. One bound is for all the tunnels of the isolate together, and each tunnel may
 * hold as much of it as stays free, so that one tunnel takes at most half and never the last byte.
 */
import { FairShare, type Share } from "../../shared/bounds/fair-share.ts";

/** Half of the memory that the platform grants an isolate: for bodies and for the messages of WebSockets. */
export const ISOLATE_BUFFER_MAX_BYTES = 64 * 1024 * 1024;
/** What a chunk costs besides its bytes: without it, a million chunks of one byte would count as one megabyte. */
const CHUNK_OVERHEAD_BYTES = 256;

const isolateBuffer = new FairShare(ISOLATE_BUFFER_MAX_BYTES);

/** A part of the isolate's buffer, which returns to it with the owner at the latest. */
export function createBufferShare(owner: object): Share {
  return isolateBuffer.createShareFor(owner);
}

/** Whether more is in memory than the isolate may buffer, because it arrived before anything could refuse it. */
export function isBufferExceeded(): boolean {
  return isolateBuffer.used > ISOLATE_BUFFER_MAX_BYTES;
}

export class BufferedBytes {
  readonly #share = createBufferShare(this);

  get held(): number {
    return this.#share.held;
  }

  /** Whether nothing more may be buffered for this tunnel now. There is no event for the end of this: poll. */
  get isFull(): boolean {
    return this.#share.isFull;
  }

  /** @returns false when the tunnel may not buffer this chunk. Otherwise the caller must `release` it. */
  hold(bytes: number): boolean {
    return this.#share.take(bytes + CHUNK_OVERHEAD_BYTES);
  }

  /** Returns what `hold` took for chunks that have this many bytes together. */
  release(bytes: number, chunks = 1): void {
    this.#share.add(-(bytes + chunks * CHUNK_OVERHEAD_BYTES));
  }

  /** Counts bytes that are buffered already or, if negative, no more. */
  add(bytes: number): void {
    this.#share.add(bytes);
  }
}

/**
 * A view keeps the whole message in memory that it is a part of.
 * @returns a copy of a view that is small compared with its message, otherwise the view.
 */
export function compactView(view: Uint8Array): Uint8Array {
  return view.byteLength * 4 < view.buffer.byteLength ? view.slice() : view;
}
