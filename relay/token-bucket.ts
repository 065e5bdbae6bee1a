/** A token bucket, with its clock as an argument. */
export class TokenBucket {
  #perMs: number;
  #burst: number;
  #tokens: number;
  #filledAt: number;

  /**
   * @param perSecond tokens that come back each second.
   * @param burst how many there are at most, and at first.
   * @param now milliseconds.
   */
  constructor(perSecond: number, burst: number, now: number) {
    this.#perMs = perSecond / 1_000;
    this.#burst = burst;
    this.#tokens = burst;
    this.#filledAt = now;
  }

  /** Takes tokens if there are any. A single datagram that is larger than the rest passes: the debt is paid later. */
  take(tokens: number, now: number): boolean {
    if (now > this.#filledAt) {
      this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#filledAt) * this.#perMs);
      this.#filledAt = now;
    }
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
