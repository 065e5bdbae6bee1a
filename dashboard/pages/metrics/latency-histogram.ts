/** The histogram of latencies in the API's breakdown: how many responses took how long. */
import type { Breakdown } from "../../../protocol/schemas/metrics.ts";

/** In ascending order. The last bucket has no upper bound. */
type Buckets = Breakdown["latency"];

/** Without the empty buckets at both ends. */
export function trimBuckets(buckets: Buckets): Buckets {
  const first = buckets.findIndex(({ requests }) => requests > 0);
  const last = buckets.findLastIndex(({ requests }) => requests > 0);
  return first === -1 ? [] : buckets.slice(first, last + 1);
}

/**
 * @param ratio 0 to 1: 0.95 for the 95th percentile.
 * @returns the upper bound of the bucket that contains the percentile, in milliseconds; null when it is the last bucket,
 *   which has none.
 */
export function findPercentileMs(buckets: Buckets, ratio: number): number | null {
  const total = buckets.reduce((sum, { requests }) => sum + requests, 0);
  let counted = 0;
  for (const { up_to_ms: bound, requests } of buckets) {
    counted += requests;
    if (counted >= total * ratio) return bound;
  }
  return null;
}
