/**
 * Visitors who wait for an agent that was there a moment ago: a restart of the server or of an agent then
 * shows as a pause, not as an error.
 */

/** How long a visitor's request waits for an agent that was there a moment ago. */
export const PARK_MAX_MS = 10_000;
export const PARK_MAX_REQUESTS = 256;

/** When an agent was last there, in storage: a restarted object knows whether to expect one. */
export interface LastAgent {
  /** null: it was connected when the object last ran. */
  goneAtMs: number | null;
}

/** How long a visitor who arrives now may wait; 0: no agent is expected. */
export function parkingTime(lastAgent: LastAgent | undefined, nowMs: number): number {
  if (!lastAgent || lastAgent.goneAtMs === null) return 0;
  return Math.max(0, lastAgent.goneAtMs + PARK_MAX_MS - nowMs);
}

export class Parking {
  #waiting = new Set<() => void>();

  get size(): number {
    return this.#waiting.size;
  }

  /** Resolves when an agent is there, or after `maxMs`, or at once when too many wait already. */
  async wait(maxMs: number): Promise<void> {
    if (maxMs <= 0 || this.#waiting.size >= PARK_MAX_REQUESTS) return;
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
