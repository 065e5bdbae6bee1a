/**
 * Limits traffic to a rate. Bytes above the rate wait, and their sender gets credit only after they have passed,
 * so that the sender waits too.
 */
import { toBytesPerSecond } from "../../../shared/bounds/bandwidth.ts";
import { SECOND_MS } from "../../../shared/time.ts";

/** How far ahead of its token's rate a tunnel may run, so that infrequent traffic never waits. */
export const PACE_BURST_MS = 200;

export class Pacer {
  #bytesPerMs = 0;
  /** When the rate allows the next byte. */
  #nextAtMs = 0;
  #reservedAtMs = 0;

  /** @param mbps megabits (10^6 bits) a second. */
  constructor(mbps: number) {
    this.setRate(mbps);
  }

  setRate(mbps: number): void {
    this.#bytesPerMs = toBytesPerSecond(mbps) / SECOND_MS;
  }

  /** Reserves the next free time for bytes. @returns in how many milliseconds they may pass. */
  reserve(bytes: number, nowMs: number): number {
    // The clock was set back. Without this, nothing would pass until it is as late as before.
    if (nowMs < this.#reservedAtMs) this.#nextAtMs -= this.#reservedAtMs - nowMs;
    this.#reservedAtMs = nowMs;
    const passesAtMs = Math.max(this.#nextAtMs, nowMs - PACE_BURST_MS);
    this.#nextAtMs = passesAtMs + bytes / this.#bytesPerMs;
    return Math.max(0, passesAtMs - nowMs);
  }
}

/**
 * The parts that one stream sends through a pacer, in order. It reserves time for a part when the previous one
 * has passed, so that streams take turns and none waits for the whole queue of another.
 */
export class PacedQueue {
  readonly #pacer: Pacer;
  #waiting: { bytes: number; pass: () => void }[] = [];
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(pacer: Pacer) {
    this.#pacer = pacer;
  }

  /** @param pass runs when the bytes may pass: at once, if nothing has to wait. */
  push(bytes: number, pass: () => void): void {
    const waitMs = this.#timer === null ? this.#reserve(bytes) : Infinity;
    if (waitMs === 0) return pass();
    this.#waiting.push({ bytes, pass });
    if (this.#timer === null) this.#passAfter(waitMs);
  }

  /** Drops all waiting parts. */
  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#waiting = [];
  }

  #reserve(bytes: number): number {
    return bytes === 0 ? 0 : this.#pacer.reserve(bytes, Date.now());
  }

  /** The first waiting part has its reservation; the ones behind it reserve in turn. */
  #passAfter(waitMs: number): void {
    this.#timer = setTimeout(() => {
      for (;;) {
        this.#waiting.shift()?.pass();
        const next = this.#waiting[0];
        if (!next) break;
        const nextWaitMs = this.#reserve(next.bytes);
        if (nextWaitMs > 0) return this.#passAfter(nextWaitMs);
      }
      this.#timer = null;
    }, waitMs);
  }
}
