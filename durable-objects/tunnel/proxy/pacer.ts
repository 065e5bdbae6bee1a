/**
 * Limits traffic to a rate. Bytes above the rate wait, and their sender gets credit only after they have passed,
 * so that the sender waits too.
 */
import { toBytesPerSecond } from "../../../shared/bounds/bandwidth.ts";
import { SECOND_MS } from "../../../shared/time.ts";

/** How far ahead of its token's rate a tunnel may run, so that infrequent traffic never waits. */
export const PACE_BURST_MS = 200;

/**
 * Parts that pass in one millisecond of the clock, which stands still while a message is handled: to send one takes workerd tens of
 * microseconds, and an agent can send a hundred thousand in one message. Other events are handled before the rest.
 */
export const PACE_PARTS_PER_MS = 512;

export class Pacer {
  #bytesPerMs = 0;
  /** When the rate allows the next byte. */
  #nextAtMs = 0;
  #reservedAtMs = 0;
  /** Parts that have passed at `#reservedAtMs`. */
  #parts = 0;

  /** @param mbps megabits (10^6 bits) a second. */
  constructor(mbps: number) {
    this.setRate(mbps);
  }

  setRate(mbps: number): void {
    this.#bytesPerMs = toBytesPerSecond(mbps) / SECOND_MS;
  }

  /** Reserves the next free time for the bytes of one part. One without bytes waits for no others. @returns in how many milliseconds they may pass. */
  reserve(bytes: number, nowMs: number): number {
    // The clock was set back. Without this, nothing would pass until it is as late as before.
    if (nowMs < this.#reservedAtMs) this.#nextAtMs -= this.#reservedAtMs - nowMs;
    if (nowMs !== this.#reservedAtMs) this.#parts = 0;
    this.#reservedAtMs = nowMs;
    this.#parts += 1;
    const pauseMs = this.#parts > PACE_PARTS_PER_MS ? 1 : 0;
    if (bytes === 0) return pauseMs;
    const passesAtMs = Math.max(this.#nextAtMs, nowMs - PACE_BURST_MS);
    this.#nextAtMs = passesAtMs + bytes / this.#bytesPerMs;
    return Math.max(pauseMs, passesAtMs - nowMs);
  }
}

/** Parts of a queue that have passed and are still in memory. */
const PASSED_MAX = 1_024;

/**
 * The parts that one stream sends through a pacer, in order. It reserves time for a part when the previous one
 * has passed, so that streams take turns and none waits for the whole queue of another.
 */
export class PacedQueue {
  readonly #pacer: Pacer;
  #waiting: { bytes: number; pass: () => void }[] = [];
  /** How many of these have passed. */
  #passed = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  constructor(pacer: Pacer) {
    this.#pacer = pacer;
  }

  /** @param pass runs when the bytes may pass: at once, if nothing has to wait. */
  push(bytes: number, pass: () => void): void {
    const waitMs = this.#timer === null ? this.#pacer.reserve(bytes, Date.now()) : Infinity;
    if (waitMs === 0) return pass();
    this.#waiting.push({ bytes, pass });
    if (this.#timer === null) this.#passAfter(waitMs);
  }

  /** Drops all waiting parts. */
  clear(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#waiting = [];
    this.#passed = 0;
  }

  /** The first waiting part has its reservation; the ones behind it reserve in turn. */
  #passAfter(waitMs: number): void {
    this.#timer = setTimeout(() => {
      for (;;) {
        this.#takeFirst()?.pass();
        const next = this.#waiting[this.#passed];
        if (!next) break;
        const nextWaitMs = this.#pacer.reserve(next.bytes, Date.now());
        if (nextWaitMs > 0) return this.#passAfter(nextWaitMs);
      }
      this.#timer = null;
    }, waitMs);
  }

  /** `shift` would move all others each time. */
  #takeFirst(): { pass: () => void } | undefined {
    const first = this.#waiting[this.#passed];
    this.#passed += 1;
    if (this.#passed < PASSED_MAX && this.#passed < this.#waiting.length) return first;
    this.#waiting.splice(0, this.#passed);
    this.#passed = 0;
    return first;
  }
}
