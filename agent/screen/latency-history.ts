/** How long the latest heartbeats took, and how much that varies. */

/** A minute of heartbeats. */
const SAMPLES_MAX = 12;
/** Fewer differences say nothing about the connection. */
const DIFFERENCES_MIN = 2;

export class LatencyHistory {
  readonly #samplesMs: number[] = [];

  add(ms: number): void {
    this.#samplesMs.push(ms);
    if (this.#samplesMs.length > SAMPLES_MAX) this.#samplesMs.shift();
  }

  /** A new connection may take another route, so earlier latencies do not count. */
  clear(): void {
    this.#samplesMs.length = 0;
  }

  /** The mean difference of two heartbeats in turn; undefined when there were too few. */
  get jitterMs(): number | undefined {
    const differences = this.#samplesMs
      .slice(1)
      .map((ms, at) => Math.abs(ms - this.#samplesMs[at]!));
    if (differences.length < DIFFERENCES_MIN) return undefined;
    return differences.reduce((sum, ms) => sum + ms, 0) / differences.length;
  }
}
