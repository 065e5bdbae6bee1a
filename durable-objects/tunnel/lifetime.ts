/**
 * The part of the tunnel's row that decides whether it serves: whether it is retired or stopped, and when it
 * expires. Stored, because agents and visitors arrive without a look-up of the row.
 */
import { MINUTE_MS } from "../../shared/time.ts";
import { RETIRED_STORAGE_MS } from "../limits.ts";
import type { InternalApi } from "../rpc.ts";
import type { Alarm } from "./alarm.ts";

/** Versions of a tunnel only increase: the later of two changes applies, in whatever order they arrive. */
export interface StopState {
  version: number;
  isStopped: boolean;
}

const KEY = {
  retired: "retired",
  removal: "storage-removal-at",
  stopState: "stopping",
  endsAt: "ends-at",
} as const;
/** When the storage of a tunnel that has ended is removed, if something could not be reported before. */
const REMOVAL_RETRY_MS = MINUTE_MS;

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

export class Lifetime {
  readonly #kv: Storage;
  #isRemoved = false;

  constructor(kv: Storage) {
    this.#kv = kv;
  }

  /** The storage, and with it the mark that the tunnel is retired, was removed by this instance. */
  get isRemoved(): boolean {
    return this.#isRemoved;
  }

  /** Permanent: ids are never reused. */
  get isRetired(): boolean {
    return this.#isRemoved || (this.#kv.get<boolean>(KEY.retired) ?? false);
  }

  /** @returns when the object's storage is to be removed. */
  retire(nowMs: number): number {
    const removalAtMs = this.#kv.get<number>(KEY.removal) ?? nowMs + RETIRED_STORAGE_MS;
    this.#kv.put(KEY.retired, true);
    this.#kv.put(KEY.removal, removalAtMs);
    this.#kv.delete(KEY.endsAt);
    return removalAtMs;
  }

  /**
   * Called at the end of an alarm. Afterwards the object equals one that was never called: the last reports have arrived,
   * and no isolate remembers a route to it.
   */
  async removeStorageIfDue(
    ctx: Pick<DurableObjectState, "storage" | "getWebSockets">,
    alarm: Pick<Alarm, "hasFailed" | "scheduleBy">,
  ): Promise<void> {
    if (!this.isRetired) return;
    // An object that an earlier version has retired has no such time.
    const removalAtMs = this.#kv.get<number>(KEY.removal) ?? 0;
    const now = Date.now();
    if (now < removalAtMs) return alarm.scheduleBy(removalAtMs, "confirmed");
    if (alarm.hasFailed || ctx.getWebSockets().length > 0) {
      return alarm.scheduleBy(now + REMOVAL_RETRY_MS, "confirmed");
    }
    this.#isRemoved = true;
    await ctx.storage.deleteAlarm();
    await ctx.storage.deleteAll();
  }

  get isStopped(): boolean {
    return this.stopState?.isStopped ?? false;
  }

  /** As it was last set; undefined before that. */
  get stopState(): StopState | undefined {
    return this.#kv.get<StopState>(KEY.stopState);
  }

  setStopState(stopState: StopState): void {
    const stored = this.stopState;
    if (!stored || stored.version < stopState.version) this.#kv.put(KEY.stopState, stopState);
  }

  /** When to ask the row whether the tunnel has expired. */
  get expiresAtMs(): number | undefined {
    return this.#kv.get<number>(KEY.endsAt);
  }

  /** An expiry only moves earlier, so a later time belongs to an older message. */
  scheduleExpiry(atMs: number): void {
    if (!this.isRetired) this.#kv.put(KEY.endsAt, Math.min(atMs, this.expiresAtMs ?? Infinity));
  }

  /** The database's clock decides. If the tunnel has expired, it is retired before the call returns. */
  async expireIfDue(
    rows: Pick<InternalApi, "expireTunnelIfDue">,
    tunnelId: string | undefined,
  ): Promise<void> {
    const { expiresAtMs } = this;
    if (tunnelId === undefined || expiresAtMs === undefined || expiresAtMs > Date.now()) return;
    const leftMs = await rows.expireTunnelIfDue(tunnelId);
    if (leftMs === null) this.#kv.delete(KEY.endsAt);
    else this.#kv.put(KEY.endsAt, Date.now() + leftMs);
  }
}
