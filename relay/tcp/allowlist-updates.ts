/**
 * Allowlists of TCP tunnels that the API has pushed. A ticket contains the list as it was when the ticket was signed, and
 * the list can change before the ticket is used: of the two lists the later one applies.
 */
import type { TunnelTicket } from "../../protocol/relay/ticket.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";

type Cidrs = string[] | null;

interface AllowlistUpdatesOptions {
  maxEntries: number;
  /** How long a ticket from before an update can still be used, in milliseconds. */
  maxAgeMs: number;
}

export class AllowlistUpdates {
  readonly #maxAgeMs: number;
  /** By tunnel, the oldest first. */
  readonly #updates: BoundedMap<string, { cidrs: Cidrs; asOfMs: number }>;

  constructor({ maxEntries, maxAgeMs }: AllowlistUpdatesOptions) {
    this.#maxAgeMs = maxAgeMs;
    this.#updates = new BoundedMap(maxEntries);
  }

  /** @param asOfMs when the API sent it. @returns false when a later update is known. */
  add(tunnelId: string, cidrs: Cidrs, asOfMs: number): boolean {
    const known = this.#updates.get(tunnelId);
    if (known && known.asOfMs > asOfMs) return false;
    this.#updates.set(tunnelId, { cidrs, asOfMs });
    for (const [oldest, update] of this.#updates) {
      if (asOfMs - update.asOfMs <= this.#maxAgeMs) break;
      this.#updates.delete(oldest);
    }
    return true;
  }

  /** @returns the blocks that apply to the agent of a ticket; null when visitors may come from anywhere. */
  getEffectiveCidrs({ sub, cidrs, generation }: TunnelTicket): Cidrs {
    const update = this.#updates.get(sub);
    return update && update.asOfMs >= generation ? update.cidrs : cidrs;
  }
}
