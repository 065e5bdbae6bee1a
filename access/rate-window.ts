/**
 * Counts the requests of the current minute of the clock, for each address or for all together. The tunnel's
 * object counts, because it receives all requests: so the limit is exact.
 */
import { getAddressGroup } from "../shared/address-group.ts";
import { RATE_WINDOW_MS } from "../protocol/limits.ts";

/** Addresses with a count of their own in one minute; further ones share a count. */
export const RATE_WINDOW_MAX_ADDRESSES = 50_000;
/** The counts are saved in this many parts. Only changed parts are written. */
const RATE_WINDOW_PARTS = 64;

/** One saved part of the counts. */
export interface SavedPart {
  startMs: number;
  counts: [key: string, count: number][];
}

/** The key for limits that count all visitors together, and for addresses beyond the bound. */
const ALL_VISITORS = "";

export class RateWindow {
  #startMs = 0;
  #counts = new Map<string, number>();
  readonly #changed = new Set<number>();

  /** @param saved the parts that the object saved before it was evicted. */
  constructor(saved: Iterable<SavedPart>) {
    for (const { startMs, counts } of saved) {
      if (startMs > this.#startMs) this.#begin(startMs);
      if (startMs < this.#startMs) continue;
      for (const [key, count] of counts) this.#counts.set(key, count);
    }
  }

  /**
   * Counts a request, unless it exceeds the limit.
   * @param address null: all visitors are counted together.
   * @returns 0 when the request may pass, else the milliseconds until the next minute.
   */
  take(address: string | null, requestsPerMinute: number, nowMs: number): number {
    const startMs = nowMs - (nowMs % RATE_WINDOW_MS);
    if (startMs !== this.#startMs) this.#begin(startMs);
    const key = this.#getCountKey(address === null ? ALL_VISITORS : getAddressGroup(address));
    const count = this.#counts.get(key) ?? 0;
    if (count >= requestsPerMinute) return startMs + RATE_WINDOW_MS - nowMs;
    this.#counts.set(key, count + 1);
    this.#changed.add(getPartNumber(key));
    return 0;
  }

  /** @returns the parts that changed since the last call, by their numbers. */
  takeChanges(): Map<number, SavedPart> {
    const parts = new Map<number, SavedPart>();
    for (const part of this.#changed) parts.set(part, { startMs: this.#startMs, counts: [] });
    this.#changed.clear();
    if (parts.size === 0) return parts;
    for (const entry of this.#counts) parts.get(getPartNumber(entry[0]))?.counts.push(entry);
    return parts;
  }

  #begin(startMs: number): void {
    this.#startMs = startMs;
    this.#counts = new Map();
    this.#changed.clear();
  }

  #getCountKey(key: string): string {
    const isFull = this.#counts.size >= RATE_WINDOW_MAX_ADDRESSES;
    return isFull && !this.#counts.has(key) ? ALL_VISITORS : key;
  }
}

function getPartNumber(key: string): number {
  let hash = 0;
  for (let at = 0; at < key.length; at++) hash = (Math.imul(hash, 31) + key.charCodeAt(at)) >>> 0;
  return hash % RATE_WINDOW_PARTS;
}
