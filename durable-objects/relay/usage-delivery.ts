/**
 * Delivers a relay's usage counts to the tunnels' objects. The counts are totals, so only the newest one of an
 * association must arrive: during a delivery the next count waits, and a newer one replaces it.
 */
import type { AssociationUsage } from "../../protocol/relay/link.ts";

const ATTEMPTS_MAX = 5;
const RETRY_AFTER_MS = 1_000;

export class UsageDelivery {
  readonly #send: (usage: AssociationUsage) => Promise<void>;
  /** The next count to deliver, by association; null: none. A key exists while a delivery is in progress. */
  readonly #next = new Map<string, AssociationUsage | null>();

  constructor(send: (usage: AssociationUsage) => Promise<void>) {
    this.#send = send;
  }

  /** Resolves when no delivery for this association is in progress. */
  async deliver(usage: AssociationUsage): Promise<void> {
    const key = `${usage.source} ${usage.tunnelId}`;
    const isInProgress = this.#next.has(key);
    this.#next.set(key, usage);
    if (isInProgress) return;
    for (let attempts = 0; attempts < ATTEMPTS_MAX;) {
      const newest = this.#next.get(key);
      if (!newest) break;
      this.#next.set(key, null);
      try {
        await this.#send(newest);
        attempts = 0;
      } catch {
        attempts += 1;
        // Unless a newer count arrived during the call.
        if (!this.#next.get(key)) this.#next.set(key, newest);
        await scheduler.wait(RETRY_AFTER_MS);
      }
    }
    this.#next.delete(key);
  }
}
