/**
 * Keeps traffic to a rate. What may not pass yet waits, and as it is granted to its sender only once it has
 * passed, the sender waits too.
 */

/** How far ahead of its token's rate a tunnel may run, so that what is rare never waits. */
export const PACE_BURST_MS = 200;

const BYTES_PER_MEGABIT = 125_000;

export class Pacer {
  readonly #bytesPerMs: number;
  /** When all that has passed is paid for. */
  #paidAtMs = 0;

  constructor(megabitsPerSecond: number) {
    this.#bytesPerMs = (megabitsPerSecond * BYTES_PER_MEGABIT) / 1000;
  }

  /** Lets bytes pass. @returns in how many milliseconds. */
  wait(bytes: number, nowMs: number): number {
    const passesAtMs = Math.max(this.#paidAtMs, nowMs - PACE_BURST_MS);
    this.#paidAtMs = passesAtMs + bytes / this.#bytesPerMs;
    return Math.max(0, passesAtMs - nowMs);
  }
}

/**
 * What one stream sends through a pacer, in order. It asks for its next part when the one before has
 * passed, so that streams take turns and none waits for all that another has ready.
 */
export class PacedQueue {
  readonly #pacer: Pacer;
  #waiting: { bytes: number; pass: () => void }[] = [];
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(pacer: Pacer) {
    this.#pacer = pacer;
  }

  /** @param pass runs when the bytes may pass: now, if nothing has to wait. */
  push(bytes: number, pass: () => void): void {
    const waitMs = this.#timer === null ? this.#waitFor(bytes) : Infinity;
    if (waitMs === 0) return pass();
    this.#waiting.push({ bytes, pass });
    if (this.#timer === null) this.#passIn(waitMs);
  }

  /** What waits is not wanted any longer. */
  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#waiting = [];
  }

  #waitFor(bytes: number): number {
    return bytes === 0 ? 0 : this.#pacer.wait(bytes, Date.now());
  }

  /** The first that waits has been let through by the pacer; those behind it have yet to ask. */
  #passIn(waitMs: number): void {
    this.#timer = setTimeout(() => {
      for (;;) {
        this.#waiting.shift()?.pass();
        const next = this.#waiting[0];
        if (!next) break;
        const nextWaitMs = this.#waitFor(next.bytes);
        if (nextWaitMs > 0) return this.#passIn(nextWaitMs);
      }
      this.#timer = null;
    }, waitMs);
  }
}
