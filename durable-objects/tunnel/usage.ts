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
  #counted: () => void;

  /** @param counted called with each change: somebody should save before long. */
  constructor(saved: UsageTotals | undefined, counted: () => void) {
    this.totals = { ...(saved ?? { bytesIn: 0, bytesOut: 0, requests: 0 }) };
    this.#counted = counted;
  }

  countRequest(): void {
    this.totals.requests += 1;
    this.#counted();
  }

  /** Towards the local server. */
  countIn(bytes: number): void {
    this.totals.bytesIn += bytes;
    this.#counted();
  }

  /** Towards the visitor. */
  countOut(bytes: number): void {
    this.totals.bytesOut += bytes;
    this.#counted();
  }
}
