/**
 * The part of the tunnel's row that decides whether it serves: whether it is retired or stopped, and when it
 * expires. Stored, because agents and visitors arrive without a look-up of the row.
 */
import type { InternalApi } from "../../rpc.ts";

/** Versions of a tunnel only increase: the later of two changes applies, in whatever order they arrive. */
export interface StopState {
  version: number;
  isStopped: boolean;
}

const KEY = { retired: "retired", stopping: "stopping", endsAt: "ends-at" } as const;

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

export class Lifetime {
  readonly #kv: Storage;

  constructor(kv: Storage) {
    this.#kv = kv;
  }

  /** Permanent: ids are never reused. */
  get isRetired(): boolean {
    return this.#kv.get<boolean>(KEY.retired) ?? false;
  }

  retire(): void {
    this.#kv.put(KEY.retired, true);
    this.#kv.delete(KEY.endsAt);
  }

  get isStopped(): boolean {
    return this.#kv.get<StopState>(KEY.stopping)?.isStopped ?? false;
  }

  setStopState(stopping: StopState): void {
    const stored = this.#kv.get<StopState>(KEY.stopping);
    if (!stored || stored.version < stopping.version) this.#kv.put(KEY.stopping, stopping);
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
