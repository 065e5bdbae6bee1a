/**
 * Bounds the memory that captures use, over all the exchanges of a tunnel together, and how much of large heads and of bodies
 * they store: a visitor who sends little else would otherwise make the object write megabytes each second.
 */
import {
  refillBucket,
  takeFromBucket,
  type TokenBucket,
} from "../../../shared/bounds/token-bucket.ts";

/** A larger head is a large one. Most servers refuse those of requests, as Node.js does. */
const LARGE_HEAD_BYTES = 16 * 1024;
export const LARGE_HEADS = { burst: 64, refillMs: 1_000 };
/** A larger body is a large one. */
export const SMALL_BODY_MAX_BYTES = 16 * 1024;
/** The last tokens are for the first 16 KiB of bodies, so that large ones do not take them from small ones. */
export const SMALL_BODY_RESERVE_BYTES = 16 * 1024 * 1024;
/** A token is a byte of a body. Large ones take as many at once as a tunnel's storage holds; then 1 MiB a second is for all. */
export const BODY_BYTES = {
  burst: 64 * 1024 * 1024 + SMALL_BODY_RESERVE_BYTES,
  refillMs: 1_000 / (1024 * 1024),
};

export class CaptureMemory {
  readonly #maxBytes: number;
  readonly #now: () => number;
  #largeHeads: TokenBucket | undefined;
  #bodyBucket: TokenBucket | undefined;
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

  /**
   * @param isLarge whether more than its first 16 KiB would be stored.
   * @returns false when too much of bodies was stored. Otherwise the caller must report what it stores.
   */
  admitBody(isLarge: boolean): boolean {
    this.#bodyBucket = refillBucket(this.#bodyBucket, BODY_BYTES, this.#now());
    return this.#bodyBucket.tokens > (isLarge ? SMALL_BODY_RESERVE_BYTES : 0);
  }

  /** What admitted bodies take in excess of the bucket, which their memory bounds, delays the next ones. */
  onBodyStored(bytes: number): void {
    if (this.#bodyBucket) this.#bodyBucket.tokens -= bytes;
  }

  #takeLargeHead(): boolean {
    const { bucket, waitMs } = takeFromBucket(this.#largeHeads, LARGE_HEADS, this.#now());
    this.#largeHeads = bucket;
    return waitMs === 0;
  }
}
