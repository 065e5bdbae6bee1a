/** A bucket that fills by one token each `refillMs`. `tokens` is what it held at `atMs`. */
export interface Bucket {
  tokens: number;
  atMs: number;
}

/** What it holds when it is full, and how long one token takes to come. */
export interface BucketRule {
  burst: number;
  refillMs: number;
}

/** `waitMs` is 0 when the request may pass. A refused request takes nothing. */
export function takeFromBucket(
  saved: Bucket | undefined,
  rule: BucketRule,
  nowMs: number,
): { bucket: Bucket; waitMs: number } {
  const before = saved ?? { tokens: rule.burst, atMs: nowMs };
  const refilled = Math.max(0, nowMs - before.atMs) / rule.refillMs;
  const tokens = Math.min(rule.burst, before.tokens + refilled);
  if (tokens >= 1) return { bucket: { tokens: tokens - 1, atMs: nowMs }, waitMs: 0 };
  return { bucket: { tokens, atMs: nowMs }, waitMs: Math.ceil((1 - tokens) * rule.refillMs) };
}

/** How long until the bucket is full again, and so not worth keeping. */
export function msUntilFull(bucket: Bucket, rule: BucketRule): number {
  return Math.ceil((rule.burst - bucket.tokens) * rule.refillMs);
}
