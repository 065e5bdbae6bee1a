/**
 * What rows have said of a tunnel's being there: that it is over, that it is stopped, when it ends. In
 * storage, because agents and visitors come without asking the rows again.
 */
import type { Rows } from "../../rpc.ts";

/** Versions of a tunnel only ever grow: of two changes the later one holds, in whatever order they come. */
export interface Stopping {
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
  get isOver(): boolean {
    return this.#kv.get<boolean>(KEY.retired) ?? false;
  }

  retire(): void {
    this.#kv.put(KEY.retired, true);
    this.#kv.delete(KEY.endsAt);
  }

  get isStopped(): boolean {
    return this.#kv.get<Stopping>(KEY.stopping)?.isStopped ?? false;
  }

  setStopping(stopping: Stopping): void {
    const known = this.#kv.get<Stopping>(KEY.stopping);
    if (!known || known.version < stopping.version) this.#kv.put(KEY.stopping, stopping);
  }

  /** When to ask the rows whether the tunnel is over. */
  get endsAtMs(): number | undefined {
    return this.#kv.get<number>(KEY.endsAt);
  }

  /** A tunnel's end only ever comes nearer; what says that it is later was sent earlier. */
  endBy(atMs: number): void {
    if (!this.isOver) this.#kv.put(KEY.endsAt, Math.min(atMs, this.endsAtMs ?? Infinity));
  }

  /** The rows decide, by their own clock; if it is time, they retire the tunnel before they answer. */
  async endIfDue(rows: Pick<Rows, "expireTunnel">, tunnelId: string | undefined): Promise<void> {
    const { endsAtMs } = this;
    if (tunnelId === undefined || endsAtMs === undefined || endsAtMs > Date.now()) return;
    const leftMs = await rows.expireTunnel(tunnelId);
    if (leftMs === null) this.#kv.delete(KEY.endsAt);
    else this.#kv.put(KEY.endsAt, Date.now() + leftMs);
  }
}
