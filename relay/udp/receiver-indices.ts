/**
 * The receiver indices that a WireGuard server has chosen, read from the handshake messages that it sends. A peer that
 * uses one of them has received what the server sent.
 */
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
export class ReceiverIndices {
  readonly #maxAgeMs: number;
  /** By index, when it was sent; the oldest first. */
  readonly #sentAtMs: BoundedMap<number, number>;

  constructor(maxEntries: number, maxAgeMs: number) {
    this.#sentAtMs = new BoundedMap(maxEntries);
    this.#maxAgeMs = maxAgeMs;
  }

  get size(): number {
    return this.#sentAtMs.size;
  }

  add(index: number, nowMs: number): void {
    this.#sentAtMs.set(index, nowMs);
    for (const [oldest, sentAtMs] of this.#sentAtMs) {
      if (nowMs - sentAtMs <= this.#maxAgeMs) break;
      this.#sentAtMs.delete(oldest);
    }
  }

  has(index: number, nowMs: number): boolean {
    const sentAtMs = this.#sentAtMs.get(index);
    return sentAtMs !== undefined && nowMs - sentAtMs <= this.#maxAgeMs;
  }
}
