/**
 * Bounds the memory that captures use, over all the exchanges of a tunnel together, and how much of large heads and bodies
 * they store: a visitor who sends little else would otherwise make the object write megabytes each second.
 */
import { takeFromBucket, type TokenBucket } from "../../../shared/bounds/token-bucket.ts";

/** A larger head is a large one. Most servers refuse those of requests, as Node.js does. */
const LARGE_HEAD_BYTES = 16 * 1024;
export const LARGE_HEADS = { burst: 64, refillMs: 1_000 };
/** A larger body is a large one. So much of it is stored in any case. */
export const SMALL_BODY_MAX_BYTES = 16 * 1024;
/** A token is a further byte of a large body: as many at once as a tunnel's storage holds, then 1 MiB a second. */
export const LARGE_BODY_BYTES = { burst: 64 * 1024 * 1024, refillMs: 1_000 / (1024 * 1024) };

export class CaptureMemory {
  readonly #maxBytes: number;
  readonly #now: () => number;
  #largeHeads: TokenBucket | undefined;
  #largeBodyBytes: TokenBucket | undefined;
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

  /** @returns false when too much of large bodies was stored. Otherwise the caller must report what it stores. */
  admitLargeBody(): boolean {
    const { bucket, waitMs } = takeFromBucket(this.#largeBodyBytes, LARGE_BODY_BYTES, this.#now());
    this.#largeBodyBytes = bucket;
    return waitMs === 0;
  }

  /** What admitted bodies take in excess of the bucket, which their memory bounds, delays the next ones. */
  onLargeBodyStored(bytes: number): void {
    if (this.#largeBodyBytes) this.#largeBodyBytes.tokens -= bytes;
  }

  #takeLargeHead(): boolean {
    const { bucket, waitMs } = takeFromBucket(this.#largeHeads, LARGE_HEADS, this.#now());
    this.#largeHeads = bucket;
    return waitMs === 0;
  }
}
