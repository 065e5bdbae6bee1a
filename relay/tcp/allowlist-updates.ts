/**
 * Allowlists of TCP tunnels that the API has pushed. A ticket carries the list as it was when it was signed, and
 * may be on its way while the list changes: of the two the later one holds.
 */
import type { TunnelTicket } from "../../protocol/relay/ticket.ts";

type Cidrs = string[] | null;

export interface AllowlistUpdatesOptions {
  maxEntries: number;
  /** How long a ticket from before an update can still be shown, in milliseconds. */
  maxAgeMs: number;
}

export class AllowlistUpdates {
  readonly #options: AllowlistUpdatesOptions;
  /** By tunnel, the oldest first. */
  readonly #updates = new Map<string, { cidrs: Cidrs; asOfMs: number }>();

  constructor(options: AllowlistUpdatesOptions) {
    this.#options = options;
  }

  /** @param asOfMs when the API sent it. @returns false when a later one came before. */
  add(tunnelId: string, cidrs: Cidrs, asOfMs: number): boolean {
    const known = this.#updates.get(tunnelId);
    if (known && known.asOfMs > asOfMs) return false;
    this.#updates.delete(tunnelId);
    this.#updates.set(tunnelId, { cidrs, asOfMs });
    for (const [oldest, update] of this.#updates) {
      const isTooOld = asOfMs - update.asOfMs > this.#options.maxAgeMs;
      if (!isTooOld && this.#updates.size <= this.#options.maxEntries) break;
      this.#updates.delete(oldest);
    }
    return true;
  }

  /** The blocks that hold for the agent of a ticket; null: visitors may come from anywhere. */
  getEffectiveCidrs({ sub, cidrs, generation }: TunnelTicket): Cidrs {
    const update = this.#updates.get(sub);
    return update && update.asOfMs >= generation ? update.cidrs : cidrs;
  }
}
