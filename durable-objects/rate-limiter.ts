/**
 * One source address on the /auth routes: a token bucket (spec §8). The name of the object is the address,
 * an IPv6 one by its /64. Organizations have buckets of their own, for what they may make us ask others.
 * The bucket is in storage: a sleeping object must not forget it.
 */
import { DurableObject } from "cloudflare:workers";
import { msUntilFull, takeFromBucket, type Bucket, type BucketRule } from "../shared/bucket.ts";
import type { ObjectBindings } from "./bindings.ts";

export const AUTH_RATE_BURST = 5;
export const AUTH_RATE_REFILL_MS = 12_000;

const BUCKET_KEY = "bucket";
const AUTH_RULE: BucketRule = { burst: AUTH_RATE_BURST, refillMs: AUTH_RATE_REFILL_MS };

export class RateLimiter extends DurableObject<ObjectBindings> {
  // ── Called by workers ──

  /** @returns 0 when the request may pass, else the milliseconds until one may. */
  async take(rule = AUTH_RULE): Promise<number> {
    const saved = this.ctx.storage.kv.get<Bucket>(BUCKET_KEY);
    const { bucket, waitMs } = takeFromBucket(saved, rule, Date.now());
    this.ctx.storage.kv.put(BUCKET_KEY, bucket);
    await this.ctx.storage.setAlarm(Date.now() + msUntilFull(bucket, rule));
    return waitMs;
  }

  // ── Called by the platform ──

  /** A full bucket is the same as none, so an address that stays away leaves nothing behind. */
  override async alarm(): Promise<void> {
    await this.ctx.storage.deleteAll();
  }
}
