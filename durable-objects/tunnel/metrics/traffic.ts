/**
 * A tunnel's traffic by the minute and by the hour. Buckets hold totals, so a report that arrives twice or late
 * changes nothing. Traffic that is in no bucket yet is the difference between the current and the bucketed
 * totals, and belongs to the current minute.
 */
import { TRAFFIC_HOURS_KEEP_MS, TRAFFIC_MINUTES_KEEP_MS } from "../../../protocol/limits.ts";
import { HOUR_MS, MINUTE_MS } from "../../../shared/time.ts";

interface TrafficTotals {
  /** Requests of every outcome. */
  requests: number;
  bytesIn: number;
  bytesOut: number;
}

export type Grain = "minute" | "hour";

/** The traffic of one minute or one hour of UTC. */
export interface TrafficBucket extends TrafficTotals {
  grain: Grain;
  startsAtMs: number;
}

/** A bucket in the object's storage. */
export interface StoredBucket extends TrafficBucket {
  /** Whether the database has it. The name is part of the storage format. */
  isTold: boolean;
}

const GRAINS: Record<Grain, { lengthMs: number; keepMs: number }> = {
  minute: { lengthMs: MINUTE_MS, keepMs: TRAFFIC_MINUTES_KEEP_MS },
  hour: { lengthMs: HOUR_MS, keepMs: TRAFFIC_HOURS_KEEP_MS },
};

export class Traffic {
  readonly #getTotals: () => TrafficTotals;
  readonly #buckets = new Map<string, StoredBucket>();
  #bucketedTotals: TrafficTotals;
  #minuteStartsAtMs: number;
  #minuteEndsAtMs: number;

  /**
   * @param getTotals returns the tunnel's current totals.
   * @param saved the buckets that were saved together with those totals.
   */
  constructor(getTotals: () => TrafficTotals, saved: StoredBucket[] = [], nowMs: number) {
    this.#getTotals = getTotals;
    this.#bucketedTotals = getTotals();
    for (const bucket of saved) this.#buckets.set(toKey(bucket), bucket);
    // If the clock was set back, a minute that was reported and dropped must not be overwritten.
    const newest = Math.max(0, ...saved.map(({ startsAtMs }) => startsAtMs));
    this.#minuteStartsAtMs = getBucketStart("minute", Math.max(nowMs, newest));
    this.#minuteEndsAtMs = this.#minuteStartsAtMs + MINUTE_MS;
  }

  /** Called before anything is counted. */
  advanceTo(nowMs: number): void {
    if (nowMs < this.#minuteEndsAtMs) return;
    this.#settle();
    this.#minuteStartsAtMs = getBucketStart("minute", nowMs);
    this.#minuteEndsAtMs = this.#minuteStartsAtMs + MINUTE_MS;
  }

  /** The buckets that the database does not have yet. */
  getUnreported(nowMs: number): TrafficBucket[] {
    this.advanceTo(nowMs);
    this.#settle();
    this.#dropExpired();
    const unreported: TrafficBucket[] = [];
    for (const { isTold, ...bucket } of this.#buckets.values()) {
      if (!isTold) unreported.push(bucket);
    }
    return unreported;
  }

  markReported(buckets: TrafficBucket[]): void {
    for (const reported of buckets) {
      const bucket = this.#buckets.get(toKey(reported));
      const isSame =
        bucket?.requests === reported.requests &&
        bucket.bytesIn === reported.bytesIn &&
        bucket.bytesOut === reported.bytesOut;
      if (isSame) bucket.isTold = true;
    }
  }

  /** To be saved together with the totals, after `getUnreported` has put all traffic into buckets. */
  get stored(): StoredBucket[] {
    return [...this.#buckets.values()];
  }

  #settle(): void {
    const now = this.#getTotals();
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

  /** Drops complete buckets that were reported, and those older than the database keeps them. */
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
