/**
 * A shard of the rate limits: token buckets by key. A key is a source address on the sign-in routes (an IPv6 address
 * counts by its /64), or an organization whose look-ups call other services. Many keys share an object, because each
 * object costs a file and anyone can send requests from many addresses. Buckets are in storage, because an object that
 * hibernates must not lose them.
 */
import { DurableObject } from "cloudflare:workers";
import {
  getMsUntilFull,
  takeFromBucket,
  type TokenBucket,
  type TokenBucketConfig,
} from "../shared/bounds/token-bucket.ts";
import type { ObjectBindings } from "./bindings.ts";
import { MINUTE_MS } from "../shared/time.ts";

export const AUTH_RATE_BURST = 5;
export const AUTH_RATE_REFILL_MS = 12_000;
/** The time between two removals of full buckets. */
export const BUCKET_SWEEP_MS = MINUTE_MS;

const AUTH_RULE: TokenBucketConfig = { burst: AUTH_RATE_BURST, refillMs: AUTH_RATE_REFILL_MS };

export class RateLimiter extends DurableObject<ObjectBindings> {
  // ── Called by workers ──

  /** @returns 0 when the request is allowed, else the milliseconds until the next one is. */
  async take(key: string, rule = AUTH_RULE): Promise<number> {
    const now = Date.now();
    const sql = this.#openTable();
    const [saved] = sql
      .exec<{ tokens: number; at_ms: number }>(
        "select tokens, at_ms from buckets where key = ?",
        key,
      )
      .toArray();
    const before: TokenBucket | undefined = saved && { tokens: saved.tokens, atMs: saved.at_ms };
    const { bucket, waitMs } = takeFromBucket(before, rule, now);
    sql.exec(
      "insert or replace into buckets (key, tokens, at_ms, full_at_ms) values (?, ?, ?, ?)",
      key,
      bucket.tokens,
      bucket.atMs,
      now + getMsUntilFull(bucket, rule),
    );
    if ((await this.ctx.storage.getAlarm()) === null) {
      await this.ctx.storage.setAlarm(now + BUCKET_SWEEP_MS);
    }
    return waitMs;
  }

  // ── Called by the platform ──

  /** A full bucket equals a missing one, so an address that sends no more requests leaves nothing in storage. */
  override async alarm(): Promise<void> {
    const now = Date.now();
    const sql = this.#openTable();
    sql.exec("delete from buckets where full_at_ms <= ?", now);
    const isEmpty = sql.exec("select 1 from buckets limit 1").toArray().length === 0;
    if (isEmpty) await this.ctx.storage.deleteAll();
    else await this.ctx.storage.setAlarm(now + BUCKET_SWEEP_MS);
  }

  // ── Inside ──

  /** Each time, because `deleteAll` drops the table. */
  #openTable(): SqlStorage {
    const { sql } = this.ctx.storage;
    sql.exec(`create table if not exists buckets (
      key text primary key,
      tokens real not null,
      at_ms integer not null,
      full_at_ms integer not null
    ) without rowid`);
    return sql;
  }
}
