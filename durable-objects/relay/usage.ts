/**
 * Brings what relays count to the tunnels' objects. Counts are totals, so that only the newest of an association
 * need arrive: while one is on its way, a newer one waits, and replaces another that waits.
 */
import type { TunnelUsage } from "../../protocol/relay/link.ts";

const TRIES_MAX = 5;
const RETRY_AFTER_MS = 1_000;

export class UsageDelivery {
  readonly #send: (usage: TunnelUsage) => Promise<void>;
  /** By association: what to deliver next. Has a key for as long as a delivery is under way. */
  readonly #next = new Map<string, TunnelUsage | null>();

  constructor(deliver: (usage: TunnelUsage) => Promise<void>) {
    this.#send = deliver;
  }

  /** @returns when nothing of this association is on its way any more. */
  async deliver(usage: TunnelUsage): Promise<void> {
    const key = `${usage.source} ${usage.tunnelId}`;
    const isUnderWay = this.#next.has(key);
    this.#next.set(key, usage);
    if (isUnderWay) return;
    for (let tries = 0; tries < TRIES_MAX;) {
      const newest = this.#next.get(key);
      if (!newest) break;
      this.#next.set(key, null);
      try {
        await this.#send(newest);
        tries = 0;
      } catch {
        tries += 1;
        // Unless a newer one came meanwhile.
        if (!this.#next.get(key)) this.#next.set(key, newest);
        await scheduler.wait(RETRY_AFTER_MS);
      }
    }
    this.#next.delete(key);
  }
}
