/**
 * Visitors' requests that wait for an agent that has just disconnected: so a restart of the server or of an agent
 * is a pause for visitors, not an error.
 */

/** How long requests wait for an agent after it has disconnected. */
export const GRACE_PERIOD_MS = 10_000;
export const PARKED_REQUESTS_MAX = 256;

/** Stored: when the last agent disconnected. */
export interface LastAgentState {
  /** null: it was connected when the object last ran. */
  goneAtMs: number | null;
}

/** How long a request that arrives now may wait; 0: no agent is expected. */
export function getGracePeriodLeftMs(lastAgent: LastAgentState | undefined, nowMs: number): number {
  if (!lastAgent || lastAgent.goneAtMs === null) return 0;
  return Math.max(0, lastAgent.goneAtMs + GRACE_PERIOD_MS - nowMs);
}

export class ParkedRequests {
  #waiting = new Set<() => void>();

  get size(): number {
    return this.#waiting.size;
  }

  /** Resolves on `release`, or after `maxMs`, or at once when too many requests wait already. */
  async wait(maxMs: number): Promise<void> {
    if (maxMs <= 0 || this.#waiting.size >= PARKED_REQUESTS_MAX) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, maxMs);
    this.#waiting.add(resolve);
    await promise;
    clearTimeout(timer);
    this.#waiting.delete(resolve);
  }

  release(): void {
    for (const resume of this.#waiting) resume();
  }
}
