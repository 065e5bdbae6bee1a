/**
 * Bounds the memory that captures use, over all the exchanges of a tunnel together, and how many large heads they store: a
 * visitor who sends little more than heads of 128 KiB would otherwise make the object write megabytes each second.
 */
import { takeFromBucket, type TokenBucket } from "../../../shared/bounds/token-bucket.ts";

/** A larger head is a large one. Most servers refuse those of requests, as Node.js does. */
const LARGE_HEAD_BYTES = 16 * 1024;
export const LARGE_HEADS = { burst: 64, refillMs: 1_000 };

export class CaptureMemory {
  readonly #maxBytes: number;
  readonly #now: () => number;
  #largeHeads: TokenBucket | undefined;
  #heldBytes = 0;
  /** The part of it that heads hold. */
  #headBytes = 0;

  /** @param now in milliseconds. */
  constructor(maxBytes: number, now: () => number = Date.now) {
    this.#maxBytes = maxBytes;
    this.#now = now;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** What bodies and messages hold. */
  get bodyBytes(): number {
    return this.#heldBytes - this.#headBytes;
  }

  /** @returns how many of the bytes were reserved. The caller must release them. */
  reserve(bytes: number): number {
    const reserved = Math.max(0, Math.min(bytes, this.#maxBytes - this.#heldBytes));
    this.#heldBytes += reserved;
    return reserved;
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes;
  }

  /**
   * @returns false when there is no memory for the whole head, or too many were large. Otherwise the caller must
   * `releaseHead` it.
   */
  reserveHead(bytes: number): boolean {
    if (bytes > this.#maxBytes - this.#heldBytes) return false;
    if (bytes > LARGE_HEAD_BYTES && !this.#takeLargeHead()) return false;
    this.#heldBytes += bytes;
    this.#headBytes += bytes;
    return true;
  }

  releaseHead(bytes: number): void {
    this.#heldBytes -= bytes;
    this.#headBytes -= bytes;
  }

  #takeLargeHead(): boolean {
    const { bucket, waitMs } = takeFromBucket(this.#largeHeads, LARGE_HEADS, this.#now());
    this.#largeHeads = bucket;
    return waitMs === 0;
  }
}
