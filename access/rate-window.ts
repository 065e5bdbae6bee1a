/**
 * How many requests came in the current minute, by the clock: from each address, or from all. Counted where
 * all of a tunnel's requests meet, so that no two of them take the same last place.
 */
import { getAddressGroup } from "../shared/address-group.ts";
import { RATE_WINDOW_MS } from "../protocol/limits.ts";

/** Addresses that a minute counts one by one; those beyond it share a count. */
export const RATE_WINDOW_MAX_ADDRESSES = 50_000;
/** A count is saved in this many parts, of which only those that changed are written. */
const RATE_WINDOW_PARTS = 64;

/** A part of a count as it is saved. */
export interface SavedPart {
  startMs: number;
  counts: [who: string, count: number][];
}

/** Who is counted where no address is told apart, and whoever comes when too many are. */
const ALL_VISITORS = "";

export class RateWindow {
  #startMs = 0;
  #counts = new Map<string, number>();
  readonly #changed = new Set<number>();

  /** @param saved what an earlier life of the object left. */
  constructor(saved: Iterable<SavedPart>) {
    for (const { startMs, counts } of saved) {
      if (startMs > this.#startMs) this.#begin(startMs);
      if (startMs < this.#startMs) continue;
      for (const [who, count] of counts) this.#counts.set(who, count);
    }
  }

  /**
   * A refused request takes nothing.
   * @param address null: all visitors count together.
   * @returns 0 when the request may pass, else the milliseconds until the next minute.
   */
  take(address: string | null, requestsPerMinute: number, nowMs: number): number {
    const startMs = nowMs - (nowMs % RATE_WINDOW_MS);
    if (startMs !== this.#startMs) this.#begin(startMs);
    const who = this.#getCountKey(address === null ? ALL_VISITORS : getAddressGroup(address));
    const count = this.#counts.get(who) ?? 0;
    if (count >= requestsPerMinute) return startMs + RATE_WINDOW_MS - nowMs;
    this.#counts.set(who, count + 1);
    this.#changed.add(getPartNumber(who));
    return 0;
  }

  /** What changed since this was last asked, by the number of the part. */
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

  #getCountKey(who: string): string {
    const isFull = this.#counts.size >= RATE_WINDOW_MAX_ADDRESSES;
    return isFull && !this.#counts.has(who) ? ALL_VISITORS : who;
  }
}

function getPartNumber(who: string): number {
  let hash = 0;
  for (let at = 0; at < who.length; at++) hash = (Math.imul(hash, 31) + who.charCodeAt(at)) >>> 0;
  return hash % RATE_WINDOW_PARTS;
}
