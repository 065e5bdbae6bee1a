/** A tunnel's totals since it was created. They are in memory; `MetricsReporter` saves them. */
export interface UsageTotals {
  bytesIn: number;
  bytesOut: number;
  requests: number;
}

export class Usage {
  readonly totals: UsageTotals;
  readonly #beforeCount: () => void;

  /** @param beforeCount called before each change, so that the caller can schedule a save. */
  constructor(saved: UsageTotals | undefined, beforeCount: () => void) {
    this.totals = { ...(saved ?? { bytesIn: 0, bytesOut: 0, requests: 0 }) };
    this.#beforeCount = beforeCount;
  }

  /** A request that was not refused, or a TCP connection. */
  countAdmittedRequest(count = 1): void {
    this.#beforeCount();
    this.totals.requests += count;
  }

  /** Bytes to the local server. */
  countIn(bytes: number): void {
    this.#beforeCount();
    this.totals.bytesIn += bytes;
  }

  /** Bytes to the visitor. */
  countOut(bytes: number): void {
    this.#beforeCount();
    this.totals.bytesOut += bytes;
  }
}
