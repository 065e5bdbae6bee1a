/**
 * One webhook receiver: it stores what vendors deliver until its retention has passed. The name of the object is
 * the receiver's id. The caller has verified the signature, with the settings whose version it passes along.
 */
import { DurableObject } from "cloudflare:workers";
import { takeFromBucket, type TokenBucket } from "../shared/bounds/token-bucket.ts";
import type { ObjectBindings } from "./bindings.ts";
import { LongPolls } from "./receiver/long-polls.ts";
import {
  computeSize,
  Deliveries,
  type StoredDelivery,
  type NewDelivery,
} from "./receiver/deliveries.ts";
import type { ReceiverSettings } from "./receiver/settings.ts";
import { pickNewest } from "./newest-version.ts";
import { RETIRED_STORAGE_MS } from "./limits.ts";
import { isDiskCritical, StorageLimit } from "./low-disk.ts";
import { MINUTE_MS } from "../shared/time.ts";

/** Deliveries to one receiver: this burst, and then one each `DELIVERY_REFILL_MS`. A large one counts as several. */
export const DELIVERY_BURST = 1_200;
/** A delivery costs a token for each unit of its size: at most 75 MiB are written at once, and then 1.25 MiB a second. */
export const DELIVERY_UNIT_BYTES = 64 * 1024;
const DELIVERY_REFILL_MS = 50;
/** Bodies and headers stored by one receiver. Only acknowledged deliveries are removed to make room. */
export const RECEIVER_STORED_MAX_BYTES = 512 * 1024 * 1024;
/** The shortest time between two removals of old deliveries. */
const RECEIVER_SWEEP_MIN_MS = MINUTE_MS;

const KEY = {
  settings: "settings",
  bucket: "bucket",
  acknowledged: "acknowledged",
  retired: "retired",
} as const;
const RATE = { burst: DELIVERY_BURST, refillMs: DELIVERY_REFILL_MS };

/** `id` is the vendor's. null: the vendor sends none, and each delivery is stored. */
export type IncomingDelivery = Omit<NewDelivery, "id"> & { id: string | null };

export type StoreOutcome =
  | { outcome: "stored" | "duplicate" | "full" | "low_disk" | "gone" }
  | { outcome: "rate_limited"; waitMs: number }
  /** It was verified with settings that have been replaced by these. */
  | { outcome: "outdated"; settings: ReceiverSettings };

/** `after` is a position; 0 is before the first delivery. */
interface DeliveryQuery {
  after: number;
  limit: number;
  sinceMs: number;
  waitMs: number;
}

export interface StoredPage {
  deliveries: StoredDelivery[];
  /** The position after which the next page begins. */
  end: number;
}

interface ReceiverStats {
  stored: number;
  lastReceivedAtMs: number | null;
  acknowledged: number;
}

export class Receiver extends DurableObject<ObjectBindings> {
  readonly #longPolls = new LongPolls();
  readonly #limit = new StorageLimit(RECEIVER_STORED_MAX_BYTES);
  #deliveries: Deliveries | undefined;
  #loading: Promise<ReceiverSettings | null> | undefined;

  // ── Called by workers ──

  /** @returns null when this receiver does not exist. */
  async getSettings(): Promise<ReceiverSettings | null> {
    if (this.#isRetired) return null;
    return this.#settings ?? (await this.#load());
  }

  /**
   * Called after a change is committed. An older version than the stored one changes nothing, and neither does
   * any version once the receiver is retired.
   */
  async publishSettings(settings: ReceiverSettings): Promise<void> {
    if (this.#isRetired) return;
    this.#saveIfNewer(settings);
    await this.#scheduleSweep();
  }

  /** A delivery that is "stored" or "duplicate" is on disk before the caller gets the result: the platform waits. */
  async store(arrival: IncomingDelivery, version: number): Promise<StoreOutcome> {
    if (this.#isRetired) return { outcome: "gone" };
    const settings = this.#settings;
    if (!settings) return { outcome: "gone" };
    if (settings.version !== version) return { outcome: "outdated", settings };
    const now = Date.now();
    const result = this.ctx.storage.transactionSync(() => this.#storeDelivery(arrival, now));
    if (result.outcome === "stored") {
      this.#longPolls.notifyAll();
      if ((await this.ctx.storage.getAlarm()) === null) await this.#scheduleSweep();
    }
    return result;
  }

  /** The deliveries after a position, the oldest first. If there are none, it waits for one. */
  async listDeliveries({ after, limit, sinceMs, waitMs }: DeliveryQuery): Promise<StoredPage> {
    const untilMs = Date.now() + waitMs;
    for (;;) {
      if (this.#isRetired) return { deliveries: [], end: after };
      const start = this.#findStart(after);
      const deliveries = this.#stored.readPage(start, { limit, sinceMs });
      const page = { deliveries, end: deliveries.at(-1)?.position ?? start };
      const leftMs = untilMs - Date.now();
      if (deliveries.length > 0 || leftMs <= 0) return page;
      // A reader that made room for another one must not wait again: the two would displace each other forever.
      if (!(await this.#longPolls.waitForDelivery(leftMs))) return page;
    }
  }

  /** The acknowledged position never decreases. @returns it. */
  acknowledge(position: number): number {
    if (this.#isRetired) return 0;
    // A delivery that has not arrived can't have been handled.
    const upTo = Math.max(this.#acknowledged, Math.min(position, this.#stored.latestPosition));
    this.ctx.storage.kv.put(KEY.acknowledged, upTo);
    return upTo;
  }

  getStats(): ReceiverStats {
    if (this.#isRetired) return { stored: 0, lastReceivedAtMs: null, acknowledged: 0 };
    const { count: stored, latestMs: lastReceivedAtMs } = this.#stored;
    return { stored, lastReceivedAtMs, acknowledged: this.#acknowledged };
  }

  /** Permanent: ids are never reused. Deletes everything, and later the mark that the receiver is retired too. */
  async retire(): Promise<void> {
    await this.ctx.storage.deleteAlarm();
    await this.ctx.storage.deleteAll();
    this.#deliveries = undefined;
    this.ctx.storage.kv.put(KEY.retired, true);
    await this.ctx.storage.setAlarm(Date.now() + RETIRED_STORAGE_MS);
    this.#longPolls.notifyAll();
  }

  // ── Called by the platform ──

  override async alarm(): Promise<void> {
    if (this.#isRetired) return this.ctx.storage.deleteAll();
    const settings = this.#settings;
    if (!settings) return;
    const isDone = this.#stored.removeBefore(Date.now() - settings.keepMs);
    if (isDone) await this.#scheduleSweep(RECEIVER_SWEEP_MIN_MS);
    else await this.ctx.storage.setAlarm(Date.now());
  }

  // ── Inside ──

  #storeDelivery(arrival: IncomingDelivery, nowMs: number): StoreOutcome {
    // Its bucket, too, would be written.
    if (isDiskCritical(nowMs)) return { outcome: "low_disk" };
    const { kv } = this.ctx.storage;
    const bytes = computeSize(JSON.stringify(arrival.headers), arrival.body);
    const cost = Math.ceil(bytes / DELIVERY_UNIT_BYTES);
    const { bucket, waitMs } = takeFromBucket(kv.get<TokenBucket>(KEY.bucket), RATE, nowMs, cost);
    kv.put(KEY.bucket, bucket);
    if (waitMs > 0) return { outcome: "rate_limited", waitMs };
    const delivery = { ...arrival, id: arrival.id ?? crypto.randomUUID() };
    if (this.#stored.has(delivery.id)) return { outcome: "duplicate" };
    // An unacknowledged delivery is never removed to make room: its vendor will not send it again.
    const maxBytes = this.#limit.getBytes(this.#stored.bytes, nowMs);
    if (!this.#stored.makeRoomFor(delivery, maxBytes, this.#acknowledged))
      return { outcome: maxBytes < RECEIVER_STORED_MAX_BYTES ? "low_disk" : "full" };
    this.#stored.add(delivery, nowMs);
    return { outcome: "stored" };
  }

  /**
   * A reader can be ahead of this receiver, because it read before an older backup was restored. It would miss the deliveries
   * that get the same positions again, so it continues with the first delivery that is not acknowledged.
   */
  #findStart(after: number): number {
    return after > this.#stored.latestPosition ? this.#acknowledged : after;
  }

  /** For when the oldest delivery's retention has passed, and not before `minWaitMs` from now. */
  async #scheduleSweep(minWaitMs = 0): Promise<void> {
    const { oldestMs } = this.#stored;
    const settings = this.#settings;
    if (oldestMs === null || !settings) return;
    const now = Date.now();
    await this.ctx.storage.setAlarm(Math.max(oldestMs + settings.keepMs + 1, now + minWaitMs));
  }

  /** Created on first use: a guessed id must not leave tables behind. */
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
    const stored = this.#settings;
    const newest = pickNewest(stored, settings);
    if (newest !== stored) this.ctx.storage.kv.put(KEY.settings, newest);
  }

  async #load(): Promise<ReceiverSettings | null> {
    const receiverId = this.ctx.id.name;
    if (receiverId === undefined)
      throw new Error("A Receiver object must be addressed by its name");
    this.#loading ??= this.env.INTERNAL_API.findReceiverSettings(receiverId).finally(
      () => (this.#loading = undefined),
    );
    const settings = await this.#loading;
    // The receiver may have been retired or changed while the database was read.
    if (settings && !this.#isRetired) this.#saveIfNewer(settings);
    return this.#isRetired ? null : (this.#settings ?? null);
  }
}
