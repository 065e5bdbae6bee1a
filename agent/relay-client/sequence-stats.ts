/** Loss, reordering and duplicates of one minute of datagrams, from their sequence numbers. */

/** Sequence numbers are u16. */
const SEQUENCES = 0x1_0000;
/** A number further ahead than this means that the sender restarted; it is not a gap. */
const GAP_MAX = 0x4000;
/** How far behind the newest one a datagram may arrive and still be distinguished from a duplicate. */
const WINDOW = 2_048;
const MISSING = 0;
const ARRIVED = 1;
const BEFORE_START = 2;
const BUCKETS = 12;
/** The owner calls `advance()` at this interval. */
export const SEQUENCE_BUCKET_MS = 5_000;

export interface DatagramQuality {
  /** Distinct datagrams that arrived in the last minute. */
  received: number;
  /** 0 to 1; null when none arrived. */
  loss: number | null;
  /** Share of those that arrived, 0 to 1; null when none arrived. */
  reordered: number | null;
  duplicates: number;
}

export class SequenceStats {
  /** One entry per bucket, in a ring: counts older than a minute are dropped without an allocation. */
  readonly #received = new Int32Array(BUCKETS);
  readonly #missing = new Int32Array(BUCKETS);
  readonly #reordered = new Int32Array(BUCKETS);
  readonly #duplicates = new Int32Array(BUCKETS);
  /** One byte for each of the last `WINDOW` numbers: `MISSING`, `ARRIVED` or `BEFORE_START`. */
  readonly #seen = new Uint8Array(WINDOW);
  #bucket = 0;
  #newest = -1;

  /** Counts one datagram. Hot path: no allocation, no clock. */
  count(sequence: number): void {
    const bucket = this.#bucket;
    if (this.#newest < 0) return this.#begin(sequence);
    const ahead = (sequence - this.#newest) & (SEQUENCES - 1);
    if (ahead === 1) {
      this.#newest = sequence;
      this.#seen[sequence % WINDOW] = ARRIVED;
      this.#received[bucket]! += 1;
      return;
    }
    if (ahead > 0 && ahead < GAP_MAX) {
      const gap = Math.min(ahead, WINDOW);
      for (let back = 0; back < gap; back += 1) {
        this.#seen[(sequence - back + SEQUENCES) % WINDOW] = MISSING;
      }
      this.#seen[sequence % WINDOW] = ARRIVED;
      this.#newest = sequence;
      this.#missing[bucket]! += ahead - 1;
      this.#received[bucket]! += 1;
      return;
    }
    const behind = (SEQUENCES - ahead) & (SEQUENCES - 1);
    if (behind >= GAP_MAX) return this.#begin(sequence);
    // Too old to know whether it arrived before: counted neither as late nor as a duplicate.
    if (behind >= WINDOW) return;
    const slot = sequence % WINDOW;
    if (this.#seen[slot] === BEFORE_START) return;
    if (this.#seen[slot] === ARRIVED) {
      this.#duplicates[bucket]! += 1;
      return;
    }
    this.#seen[slot] = ARRIVED;
    this.#received[bucket]! += 1;
    this.#reordered[bucket]! += 1;
    this.#missing[bucket]! -= 1;
  }

  /** Starts a new bucket in place of the oldest one. */
  advance(): void {
    this.#bucket = (this.#bucket + 1) % BUCKETS;
    for (const ring of [this.#received, this.#missing, this.#reordered, this.#duplicates]) {
      ring[this.#bucket] = 0;
    }
  }

  /** The sender restarts its sequence numbers. The measurements are not affected. */
  restart(): void {
    this.#newest = -1;
  }

  getQuality(): DatagramQuality {
    const received = sum(this.#received);
    // A late datagram may have been counted as missing in a bucket that was dropped since.
    const missing = Math.max(0, sum(this.#missing));
    return {
      received,
      loss: received === 0 ? null : missing / (received + missing),
      reordered: received === 0 ? null : sum(this.#reordered) / received,
      duplicates: sum(this.#duplicates),
    };
  }

  #begin(sequence: number): void {
    this.#seen.fill(BEFORE_START);
    this.#seen[sequence % WINDOW] = ARRIVED;
    this.#newest = sequence;
    this.#received[this.#bucket]! += 1;
  }
}

function sum(ring: Int32Array): number {
  let total = 0;
  for (const value of ring) total += value;
  return total;
}
