/**
 * A token bucket. The name of the object says whose: a source address on the /auth routes (spec §8; an IPv6 one
 * by its /64), or an organization whose look-ups call other services. The bucket is in storage, because an
 * object that hibernates must not lose it.
 */
import { DurableObject } from "cloudflare:workers";
import {
  msUntilFull,
  takeFromBucket,
  type TokenBucket,
  type TokenBucketConfig,
} from "../shared/token-bucket.ts";
import type { ObjectBindings } from "./bindings.ts";

export const AUTH_RATE_BURST = 5;
export const AUTH_RATE_REFILL_MS = 12_000;

const BUCKET_KEY = "bucket";
const AUTH_RULE: TokenBucketConfig = { burst: AUTH_RATE_BURST, refillMs: AUTH_RATE_REFILL_MS };

export class RateLimiter extends DurableObject<ObjectBindings> {
  // ── Called by workers ──

  /** @returns 0 when the request is allowed, else the milliseconds until the next one is. */
  async take(rule = AUTH_RULE): Promise<number> {
    const stored = this.ctx.storage.kv.get<TokenBucket>(BUCKET_KEY);
    const { bucket, waitMs } = takeFromBucket(stored, rule, Date.now());
    this.ctx.storage.kv.put(BUCKET_KEY, bucket);
    await this.ctx.storage.setAlarm(Date.now() + msUntilFull(bucket, rule));
    return waitMs;
  }

  // ── Called by the platform ──

  /** A full bucket equals a missing one, so an address that sends no more requests leaves nothing in storage. */
  override async alarm(): Promise<void> {
    await this.ctx.storage.deleteAll();
  }
}
