/**
 * When how much went through a tunnel: by the minute and by the hour, in totals of each, so that a report
 * which comes twice or late changes nothing. What is in no bucket yet is the difference to the marked totals,
 * and belongs to the minute in which the last one was counted.
 */
import {
  HOUR_MS,
  MINUTE_MS,
  TRAFFIC_HOURS_KEEP_MS,
  TRAFFIC_MINUTES_KEEP_MS,
} from "../../../protocol/limits.ts";

export interface TrafficTotals {
  /** Of every outcome. */
  requests: number;
  bytesIn: number;
  bytesOut: number;
}

export type Grain = "minute" | "hour";

/** What went through in a minute or an hour of UTC. */
export interface TrafficBucket extends TrafficTotals {
  grain: Grain;
  startsAtMs: number;
}

/** A bucket, and whether the rows have heard of it. */
export interface StoredBucket extends TrafficBucket {
  isTold: boolean;
}

const GRAINS: Record<Grain, { lengthMs: number; keepMs: number }> = {
  minute: { lengthMs: MINUTE_MS, keepMs: TRAFFIC_MINUTES_KEEP_MS },
  hour: { lengthMs: HOUR_MS, keepMs: TRAFFIC_HOURS_KEEP_MS },
};

export class Traffic {
  readonly #totals: () => TrafficTotals;
  readonly #buckets = new Map<string, StoredBucket>();
  #bucketedTotals: TrafficTotals;
  #minuteStartsAtMs: number;
  #minuteEndsAtMs: number;

  /**
   * @param totals what the tunnel has counted, whenever it is called.
   * @param saved together with those totals.
   */
  constructor(totals: () => TrafficTotals, saved: StoredBucket[] = [], nowMs: number) {
    this.#totals = totals;
    this.#bucketedTotals = totals();
    for (const bucket of saved) this.#buckets.set(toKey(bucket), bucket);
    // A clock that was set back must not write over a minute that was told and forgotten.
    const newest = Math.max(0, ...saved.map(({ startsAtMs }) => startsAtMs));
    this.#minuteStartsAtMs = getBucketStart("minute", Math.max(nowMs, newest));
    this.#minuteEndsAtMs = this.#minuteStartsAtMs + MINUTE_MS;
  }

  /** Before something is counted. */
  advanceTo(nowMs: number): void {
    if (nowMs < this.#minuteEndsAtMs) return;
    this.#settle();
    this.#minuteStartsAtMs = getBucketStart("minute", nowMs);
    this.#minuteEndsAtMs = this.#minuteStartsAtMs + MINUTE_MS;
  }

  /** What the rows have yet to hear of. */
  getUnreported(nowMs: number): TrafficBucket[] {
    this.advanceTo(nowMs);
    this.#settle();
    this.#dropExpired();
    const untold: TrafficBucket[] = [];
    for (const { isTold, ...bucket } of this.#buckets.values()) if (!isTold) untold.push(bucket);
    return untold;
  }

  markReported(buckets: TrafficBucket[]): void {
    for (const told of buckets) {
      const bucket = this.#buckets.get(toKey(told));
      const isSame =
        bucket?.requests === told.requests &&
        bucket.bytesIn === told.bytesIn &&
        bucket.bytesOut === told.bytesOut;
      if (isSame) bucket.isTold = true;
    }
  }

  /** To be saved together with the totals, once `untold` has put all of them into buckets. */
  get stored(): StoredBucket[] {
    return [...this.#buckets.values()];
  }

  #settle(): void {
    const now = this.#totals();
    const requests = now.requests - this.#bucketedTotals.requests;
    const bytesIn = now.bytesIn - this.#bucketedTotals.bytesIn;
    const bytesOut = now.bytesOut - this.#bucketedTotals.bytesOut;
    if (requests === 0 && bytesIn === 0 && bytesOut === 0) return;
    this.#bucketedTotals = now;
    for (const grain of ["minute", "hour"] as const) {
      const bucket = this.#getOrCreateBucket(grain, this.#minuteStartsAtMs);
      bucket.requests += requests;
      bucket.bytesIn += bytesIn;
      bucket.bytesOut += bytesOut;
      bucket.isTold = false;
    }
  }

  #getOrCreateBucket(grain: Grain, atMs: number): StoredBucket {
    const startsAtMs = getBucketStart(grain, atMs);
    const nothing = { requests: 0, bytesIn: 0, bytesOut: 0, isTold: false };
    const empty: StoredBucket = { grain, startsAtMs, ...nothing };
    const bucket = this.#buckets.get(toKey(empty)) ?? empty;
    this.#buckets.set(toKey(bucket), bucket);
    return bucket;
  }

  /** What is over and told, and what the rows would not keep any more. */
  #dropExpired(): void {
    for (const [key, { grain, startsAtMs, isTold }] of this.#buckets) {
      const { lengthMs, keepMs } = GRAINS[grain];
      const ageMs = this.#minuteStartsAtMs - startsAtMs;
      if ((isTold && ageMs >= lengthMs) || ageMs > keepMs) this.#buckets.delete(key);
    }
  }
}

function getBucketStart(grain: Grain, atMs: number): number {
  const { lengthMs } = GRAINS[grain];
  return Math.floor(atMs / lengthMs) * lengthMs;
}

function toKey({ grain, startsAtMs }: Pick<TrafficBucket, "grain" | "startsAtMs">): string {
  return `${grain}:${startsAtMs}`;
}
