/** The state of a token bucket: it held `tokens` at `atMs`. */
export interface TokenBucket {
  tokens: number;
  atMs: number;
}

/** A full bucket holds `burst` tokens; one token is added every `refillMs`. */
export interface TokenBucketConfig {
  burst: number;
  refillMs: number;
}

/**
 * @param cost in tokens.
 * @returns `waitMs` 0 when the request may pass. A refused request takes no token.
 */
export function takeFromBucket(
  saved: TokenBucket | undefined,
  rule: TokenBucketConfig,
  nowMs: number,
  cost = 1,
): { bucket: TokenBucket; waitMs: number } {
  const { tokens } = refillBucket(saved, rule, nowMs);
  if (tokens >= cost) return { bucket: { tokens: tokens - cost, atMs: nowMs }, waitMs: 0 };
  return { bucket: { tokens, atMs: nowMs }, waitMs: Math.ceil((cost - tokens) * rule.refillMs) };
}

/** @param saved undefined for a full bucket. */
export function refillBucket(
  saved: TokenBucket | undefined,
  { burst, refillMs }: TokenBucketConfig,
  nowMs: number,
): TokenBucket {
  const { tokens, atMs } = saved ?? { tokens: burst, atMs: nowMs };
  const refilled = Math.max(0, nowMs - atMs) / refillMs;
  return { tokens: Math.min(burst, tokens + refilled), atMs: nowMs };
}

/** How long until the bucket is full again: its state need not be stored any longer then. */
export function getMsUntilFull(bucket: TokenBucket, rule: TokenBucketConfig): number {
  return Math.ceil((rule.burst - bucket.tokens) * rule.refillMs);
}
