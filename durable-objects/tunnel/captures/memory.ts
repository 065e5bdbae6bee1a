/**
 * Bounds the memory that captures use, over all the exchanges of a tunnel together, and how much they write to the disk: busy
 * visitors would otherwise make the object write tens of megabytes each second.
 */
import {
  refillBucket,
  takeFromBucket,
  type TokenBucket,
} from "../../../shared/bounds/token-bucket.ts";

/** Heads above this size are limited by `LARGE_HEADS`. Most servers refuse such requests, as Node.js does. */
const SMALL_HEAD_MAX_BYTES = 16 * 1024;
export const LARGE_HEADS = { burst: 64, refillMs: 1_000 };
/** Larger bodies are cut to this size while few tokens are left (`WRITE_RESERVE_BYTES.largeBody`). */
export const SMALL_BODY_MAX_BYTES = 16 * 1024;
const MEBIBYTE = 1024 * 1024;
/**
 * A token is a byte. The burst covers large bodies that fill a tunnel's storage once; after it, 2 MiB a second are for
 * everything.
 */
export const WRITTEN_BYTES = { burst: 80 * MEBIBYTE, refillMs: 1_000 / (2 * MEBIBYTE) };
/** Server-sent events that are parsed. Further ones are only counted: parsing a million tiny ones takes more than a second. */
export const PARSED_EVENTS = { burst: 10_000, refillMs: 0.2 };
/**
 * How many tokens each part of a capture leaves to those below it: when there are fewer, the part is not stored. The rest of a
 * capture is always stored.
 */
export const WRITE_RESERVE_BYTES = {
  /** More than the first 16 KiB of a body. */
  largeBody: 16 * MEBIBYTE,
  body: 8 * MEBIBYTE,
  /** A message of a WebSocket, or an event. */
  entry: 4 * MEBIBYTE,
  /** The headers of a request or of a response. */
  head: 0,
};

/**
 * Stored when half of the tokens are used up: a tunnel without traffic leaves the memory, and would begin with a full
 * bucket.
 */
const WRITTEN_KEY = "captures-written";

type Storage = Pick<DurableObjectStorage, "kv" | "put">;

export class CaptureMemory {
  readonly #maxBytes: number;
  readonly #now: () => number;
  readonly #storage: Storage | undefined;
  #largeHeads: TokenBucket | undefined;
  #written: TokenBucket | undefined;
  #parsedEvents: TokenBucket | undefined;
  #heldBytes = 0;
  /** The parts of it that heads hold, and that no capture will contain. */
  #headBytes = 0;
  #parserBytes = 0;

  /** @param now in milliseconds. */
  constructor(maxBytes: number, now: () => number = Date.now, storage?: Storage) {
    this.#maxBytes = maxBytes;
    this.#now = now;
    this.#storage = storage;
    this.#written = storage?.kv.get<TokenBucket>(WRITTEN_KEY);
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** The bytes that bodies and messages hold. */
  get bodyBytes(): number {
    return this.#heldBytes - this.#headBytes - this.#parserBytes;
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
   * @returns false when there is no memory for the whole head, too many were large, or too much was written. Otherwise the
   * caller must `releaseHead` it.
   */
  reserveHead(bytes: number): boolean {
    if (bytes > this.#maxBytes - this.#heldBytes || !this.admits("head")) return false;
    if (bytes > SMALL_HEAD_MAX_BYTES && !this.#takeLargeHead()) return false;
    this.#heldBytes += bytes;
    this.#headBytes += bytes;
    return true;
  }

  releaseHead(bytes: number): void {
    this.#heldBytes -= bytes;
    this.#headBytes -= bytes;
  }

  /**
   * For what a parser holds while an exchange is open. It is not written.
   * @returns false when there is not that much memory. Otherwise the caller must `releaseParser` it.
   */
  reserveParser(bytes: number): boolean {
    if (bytes > this.#maxBytes - this.#heldBytes) return false;
    this.#heldBytes += bytes;
    this.#parserBytes += bytes;
    return true;
  }

  releaseParser(bytes: number): void {
    this.#heldBytes -= bytes;
    this.#parserBytes -= bytes;
  }

  /** What an ended capture has reserved for its bodies and heads. */
  releaseCapture({ bodyBytes, headBytes }: { bodyBytes: number; headBytes: number }): void {
    this.release(bodyBytes);
    this.releaseHead(headBytes);
  }

  /** Whether the part may be stored. Bytes in memory count as written, because they will be. */
  admits(part: keyof typeof WRITE_RESERVE_BYTES): boolean {
    const unwrittenBytes = this.#heldBytes - this.#parserBytes;
    return this.#refill().tokens - unwrittenBytes > WRITE_RESERVE_BYTES[part];
  }

  /** Whether the next server-sent event is parsed. */
  admitsEvent(): boolean {
    const { bucket, waitMs } = takeFromBucket(this.#parsedEvents, PARSED_EVENTS, this.#now());
    this.#parsedEvents = bucket;
    return waitMs === 0;
  }

  /**
   * Takes a token for each written byte. There may be fewer tokens than bytes; the next captures then lack parts for
   * longer.
   */
  countWritten(bytes: number): void {
    const { tokens, atMs } = this.#refill();
    this.#written = { tokens: Math.max(-WRITTEN_BYTES.burst, tokens - bytes), atMs };
    if (this.#written.tokens < WRITTEN_BYTES.burst / 2) {
      void this.#storage?.put({ [WRITTEN_KEY]: this.#written }, { allowUnconfirmed: true });
    }
  }

  /** For a tunnel that no longer captures. */
  deleteStored(): void {
    this.#storage?.kv.delete(WRITTEN_KEY);
  }

  #refill(): TokenBucket {
    return (this.#written = refillBucket(this.#written, WRITTEN_BYTES, this.#now()));
  }

  #takeLargeHead(): boolean {
    const { bucket, waitMs } = takeFromBucket(this.#largeHeads, LARGE_HEADS, this.#now());
    this.#largeHeads = bucket;
    return waitMs === 0;
  }
}
