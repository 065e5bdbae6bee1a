/**
 * How many datagrams, or bytes of datagrams, may pass. Unlike `takeFromBucket` of shared/bounds/token-bucket.ts, it allocates
 * nothing for a datagram, and lets the last one take more tokens than are left.
 */
export class DatagramBudget {
  #perMs: number;
  #burst: number;
  #tokens: number;
  #filledAtMs: number;

  /**
   * @param perSecond tokens that are added every second.
   * @param burst the capacity, with which it starts.
   */
  constructor(perSecond: number, burst: number, nowMs: number) {
    this.#perMs = perSecond / 1_000;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledAtMs = nowMs;
  }

  /** Takes tokens if any are left. One datagram may take more than are left: the balance becomes negative. */
  take(tokens: number, nowMs: number): boolean {
    // The clock may have been set back.
    const passedMs = Math.max(0, nowMs - this.#filledAtMs);
    this.#tokens = Math.min(this.#burst, this.#tokens + passedMs * this.#perMs);
    this.#filledAtMs = nowMs;
    if (this.#tokens <= 0) return false;
    this.#tokens -= tokens;
    return true;
  }

  setRate(perSecond: number, burst: number): void {
    this.#perMs = perSecond / 1_000;
    this.#burst = burst;
    this.#tokens = Math.min(this.#tokens, burst);
  }
}
