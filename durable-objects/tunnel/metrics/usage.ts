/**
 * A tunnel's counters since it was made. They live in memory while requests flow, and are saved when they
 * are reported.
 */
export interface UsageTotals {
  bytesIn: number;
  bytesOut: number;
  requests: number;
}

export class Usage {
  readonly totals: UsageTotals;
  readonly #beforeCount: () => void;

  /** @param counting called before each change: somebody should save before long. */
  constructor(saved: UsageTotals | undefined, counting: () => void) {
    this.totals = { ...(saved ?? { bytesIn: 0, bytesOut: 0, requests: 0 }) };
    this.#beforeCount = counting;
  }

  /** One that nothing kept out; a TCP connection is one, too. */
  countRequest(count = 1): void {
    this.#beforeCount();
    this.totals.requests += count;
  }

  /** Towards the local server. */
  countIn(bytes: number): void {
    this.#beforeCount();
    this.totals.bytesIn += bytes;
  }

  /** Towards the visitor. */
  countOut(bytes: number): void {
    this.#beforeCount();
    this.totals.bytesOut += bytes;
  }
}
