/**
 * One webhook receiver: what vendors delivered, until it is read and too old. The name of the object is the
 * receiver's id. Whoever calls has checked the signature, by the settings whose version it says.
 */
import { DurableObject } from "cloudflare:workers";
import { takeFromBucket, type Bucket } from "../shared/bucket.ts";
import type { ObjectBindings } from "./bindings.ts";
import { LongPolls } from "./receiver/long-polls.ts";
import { Deliveries, type StoredDelivery, type NewDelivery } from "./receiver/deliveries.ts";
import { newerSettings, type ReceiverSettings } from "./receiver/settings.ts";

/** Deliveries of one receiver: so many at once, and then one more each `DELIVERY_REFILL_MS`. */
export const DELIVERY_BURST = 1_200;
const DELIVERY_REFILL_MS = 50;
/** Bodies and header lines of one receiver. What was acknowledged makes room; nothing else does. */
export const RECEIVER_STORED_MAX_BYTES = 512 * 1024 * 1024;
/** How often what is too old is looked for, at the most. */
const RECEIVER_SWEEP_MIN_MS = 60_000;

const KEY = {
  settings: "settings",
  bucket: "bucket",
  acknowledged: "acknowledged",
  retired: "retired",
} as const;
const RATE = { burst: DELIVERY_BURST, refillMs: DELIVERY_REFILL_MS };

/** `id` is the vendor's. null: it gives none, and each delivery is kept. */
export type IncomingDelivery = Omit<NewDelivery, "id"> & { id: string | null };

export type StoreOutcome =
  | { outcome: "kept" | "repeated" | "full" | "gone" }
  | { outcome: "rate_limited"; waitMs: number }
  /** It was judged by settings that are no more. */
  | { outcome: "outdated"; settings: ReceiverSettings };

/** Places in the order of deliveries; 0 is before the first. */
export interface DeliveryQuery {
  after: number;
  limit: number;
  sinceMs: number;
  waitMs: number;
}

export interface ReceiverStats {
  stored: number;
  lastReceivedAtMs: number | null;
  acknowledged: number;
}

export class Receiver extends DurableObject<ObjectBindings> {
  readonly #longPolls = new LongPolls();
  #deliveries: Deliveries | undefined;
  #loading: Promise<ReceiverSettings | null> | undefined;

  // ── Called by workers ──

  /** @returns null when there is no such receiver. */
  async getSettings(): Promise<ReceiverSettings | null> {
    if (this.#isRetired) return null;
    return this.#settings ?? (await this.#load());
  }

  /**
   * Tells of a change after its commit. An older version than the one known changes nothing, and neither does
   * anything that comes after the receiver's end.
   */
  async publishSettings(settings: ReceiverSettings): Promise<void> {
    if (this.#isRetired) return;
    this.#saveIfNewer(settings);
    await this.#scheduleSweep();
  }

  /** What is "kept" or "repeated" is on disk before the caller hears of it: the platform holds the answer. */
  async store(arrival: IncomingDelivery, version: number): Promise<StoreOutcome> {
    if (this.#isRetired) return { outcome: "gone" };
    const settings = this.#settings;
    if (!settings) return { outcome: "gone" };
    if (settings.version !== version) return { outcome: "outdated", settings };
    const now = Date.now();
    const taken = this.ctx.storage.transactionSync(() => this.#storeDelivery(arrival, now));
    if (taken.outcome === "kept") {
      this.#longPolls.notifyAll();
      if ((await this.ctx.storage.getAlarm()) === null) await this.#scheduleSweep();
    }
    return taken;
  }

  /** Those behind a place, the oldest first. Where there are none it waits for one. */
  async listDeliveries({ after, limit, sinceMs, waitMs }: DeliveryQuery): Promise<StoredDelivery[]> {
    const untilMs = Date.now() + waitMs;
    for (;;) {
      if (this.#isRetired) return [];
      const page = this.#stored.page(after, { limit, sinceMs });
      const leftMs = untilMs - Date.now();
      if (page.length > 0 || leftMs <= 0) return page;
      // Whoever made room for another reader must not ask for a place again: the two would take turns for ever.
      if (!(await this.#longPolls.waitForDelivery(leftMs))) return page;
    }
  }

  /** Only ever moves on. @returns up to where everything is acknowledged by now. */
  acknowledge(place: number): number {
    if (this.#isRetired) return 0;
    // Nobody can have handled what is yet to come.
    const upTo = Math.max(this.#acknowledged, Math.min(place, this.#stored.latestPosition));
    this.ctx.storage.kv.put(KEY.acknowledged, upTo);
    return upTo;
  }

  getStats(): ReceiverStats {
    if (this.#isRetired) return { stored: 0, lastReceivedAtMs: null, acknowledged: 0 };
    const { count: kept, latestMs: lastReceivedAtMs } = this.#stored;
    return { stored, lastReceivedAtMs, acknowledged: this.#acknowledged };
  }

  /** For good, with everything in it: ids are never used again. */
  async retire(): Promise<void> {
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
    this.#deliveries = undefined;
    this.ctx.storage.kv.put(KEY.retired, true);
    this.#longPolls.notifyAll();
  }

  // ── Called by the platform ──

  override async alarm(): Promise<void> {
    const settings = this.#settings;
    if (!settings) return;
    const isDone = this.#stored.removeBefore(Date.now() - settings.keepMs);
    if (isDone) await this.#scheduleSweep(RECEIVER_SWEEP_MIN_MS);
    else await this.ctx.storage.setAlarm(Date.now());
  }

  // ── Inside ──

  #storeDelivery(arrival: IncomingDelivery, now: number): StoreOutcome {
    const { kv } = this.ctx.storage;
    const { bucket, waitMs } = takeFromBucket(kv.get<Bucket>(KEY.bucket), RATE, now);
    kv.put(KEY.bucket, bucket);
    if (waitMs > 0) return { outcome: "rate_limited", waitMs };
    const delivery = { ...arrival, id: arrival.id ?? crypto.randomUUID() };
    if (this.#stored.has(delivery.id)) return { outcome: "repeated" };
    // What nobody has acknowledged was promised to be kept: its vendor will not send it again.
    if (!this.#stored.makeRoomFor(delivery, RECEIVER_STORED_MAX_BYTES, this.#acknowledged)) {
      return { outcome: "full" };
    }
    this.#stored.add(delivery, now);
    return { outcome: "kept" };
  }

  /** When the oldest is too old, and not before `leastMs` from now. */
  async #scheduleSweep(leastMs = 0): Promise<void> {
    const { oldestMs } = this.#stored;
    const settings = this.#settings;
    if (oldestMs === null || !settings) return;
    const now = Date.now();
    await this.ctx.storage.setAlarm(Math.max(oldestMs + settings.keepMs + 1, now + leastMs));
  }

  /** Made when it is first needed: a name that a stranger guessed leaves no tables behind. */
  get #stored(): Deliveries {
    return (this.#deliveries ??= new Deliveries(this.ctx.storage.sql));
  }

  get #settings(): ReceiverSettings | undefined {
    return this.ctx.storage.kv.get<ReceiverSettings>(KEY.settings);
  }

  get #isRetired(): boolean {
    return this.ctx.storage.kv.get<boolean>(KEY.retired) ?? false;
  }

  get #acknowledged(): number {
    return this.ctx.storage.kv.get<number>(KEY.acknowledged) ?? 0;
  }

  #saveIfNewer(settings: ReceiverSettings): void {
    const known = this.#settings;
    const newest = newerSettings(known, settings);
    if (newest !== known) this.ctx.storage.kv.put(KEY.settings, newest);
  }

  async #load(): Promise<ReceiverSettings | null> {
    const receiverId = this.ctx.id.name;
    if (receiverId === undefined) throw new Error("Receiver objects are found by name");
    this.#loading ??= this.env.ROWS.receiver(receiverId).finally(() => (this.#loading = undefined));
    const settings = await this.#loading;
    // It can have ended, or been changed, while the rows were asked.
    if (settings && !this.#isRetired) this.#saveIfNewer(settings);
    return this.#isRetired ? null : (this.#settings ?? null);
  }
}
