/**
 * Visitors' requests that wait for an agent that has just disconnected: so a restart of the server or of an agent
 * is a pause for visitors, not an error.
 */

import { getAddressGroup } from "../../../shared/address-group.ts";
import { SourceSlots } from "../../../shared/bounds/source-slots.ts";

/** How long requests wait for an agent after it has disconnected. */
export const GRACE_PERIOD_MS = 10_000;
export const PARKED_REQUESTS_MAX = 256;

/**
 * How long a request that arrives now may wait.
 * @param sinceMs when visitors began to wait for the last agent; undefined: no agent is expected.
 */
export function getGracePeriodLeftMs(sinceMs: number | undefined, nowMs: number): number {
  if (sinceMs === undefined) return 0;
  // The clock may have been set back since.
  const waitedMs = Math.max(0, nowMs - sinceMs);
  return Math.max(0, GRACE_PERIOD_MS - waitedMs);
}

export class ParkedRequests {
  readonly #slots = new SourceSlots(PARKED_REQUESTS_MAX);
  readonly #waiting = new Set<() => void>();

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Resolves on `release`, or after `maxMs`, or when the visitor disconnects, or at once when too many requests wait already.
   * @param address the visitor's: one source may have as many requests here as places stay free.
   */
  async wait(address: string, maxMs: number, signal?: AbortSignal): Promise<void> {
    if (maxMs <= 0 || signal?.aborted) return;
    const source = getAddressGroup(address);
    if (!this.#slots.take(source)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, maxMs);
    signal?.addEventListener("abort", () => resolve(), { once: true });
    this.#waiting.add(resolve);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
    this.#slots.free(source);
  }

  release(): void {
    for (const resume of this.#waiting) resume();
  }
}
