/**
 * What rows have said of a tunnel's being there: that it is over, that it is stopped, when it ends. In
 * storage, because agents and visitors come without asking the rows again.
 */
import type { Rows } from "../../rpc.ts";

/** Versions of a tunnel only ever grow: of two changes the later one holds, in whatever order they come. */
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

  /** Permanent: ids are never used again. */
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
    const known = this.#kv.get<StopState>(KEY.stopping);
    if (!known || known.version < stopping.version) this.#kv.put(KEY.stopping, stopping);
  }

  /** When to ask the rows whether the tunnel is over. */
  get expiresAtMs(): number | undefined {
    return this.#kv.get<number>(KEY.endsAt);
  }

  /** A tunnel's end only ever comes nearer; what says that it is later was sent earlier. */
  scheduleExpiry(atMs: number): void {
    if (!this.isRetired) this.#kv.put(KEY.endsAt, Math.min(atMs, this.expiresAtMs ?? Infinity));
  }

  /** The rows decide, by their own clock; if it is time, they retire the tunnel before they answer. */
  async expireIfDue(rows: Pick<Rows, "expireTunnel">, tunnelId: string | undefined): Promise<void> {
    const { expiresAtMs } = this;
    if (tunnelId === undefined || expiresAtMs === undefined || expiresAtMs > Date.now()) return;
    const leftMs = await rows.expireTunnel(tunnelId);
    if (leftMs === null) this.#kv.delete(KEY.endsAt);
    else this.#kv.put(KEY.endsAt, Date.now() + leftMs);
  }
}
