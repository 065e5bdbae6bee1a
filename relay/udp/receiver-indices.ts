/**
 * The receiver indices that a WireGuard server has chosen, read from the handshake messages that it sends. A peer that
 * uses one of them has received what the server sent.
 */
import { BoundedMap } from "../../shared/bounded-map.ts";
export class ReceiverIndices {
  readonly #maxAgeMs: number;
  /** By index, when it was sent; the oldest first. */
  readonly #sentAt: BoundedMap<number, number>;

  constructor(maxEntries: number, maxAgeMs: number) {
    this.#sentAt = new BoundedMap(maxEntries);
    this.#maxAgeMs = maxAgeMs;
  }

  get size(): number {
    return this.#sentAt.size;
  }

  add(index: number, now: number): void {
    this.#sentAt.set(index, now);
    for (const [oldest, sentAt] of this.#sentAt) {
      if (now - sentAt <= this.#maxAgeMs) break;
      this.#sentAt.delete(oldest);
    }
  }

  has(index: number, now: number): boolean {
    const sentAt = this.#sentAt.get(index);
    return sentAt !== undefined && now - sentAt <= this.#maxAgeMs;
  }
}
