/** What is known of the last agent when none is there: a restarted object knows whether to expect one. */
import type { LastAgent } from "./parking.ts";

const KEY = "last-agent";

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

export class AgentTrace {
  readonly #kv: Storage;

  constructor(kv: Storage) {
    this.#kv = kv;
  }

  arrived(): void {
    this.#kv.put<LastAgent>(KEY, { goneAtMs: null });
  }

  /** @param meant nobody need wait for its return. */
  left(meant: boolean, nowMs: number): void {
    if (meant) this.#kv.delete(KEY);
    else this.#kv.put<LastAgent>(KEY, { goneAtMs: nowMs });
  }

  /** As far as was noted, it is there still. */
  get isThere(): boolean {
    return this.#kv.get<LastAgent>(KEY)?.goneAtMs === null;
  }

  get goneAtMs(): number | null {
    return this.#kv.get<LastAgent>(KEY)?.goneAtMs ?? null;
  }

  /**
   * For who finds nobody there. An object that restarted lost its agent on the way: then the clock starts
   * with who asks first.
   */
  missed(nowMs: number): LastAgent | undefined {
    if (this.isThere) this.left(false, nowMs);
    return this.#kv.get<LastAgent>(KEY);
  }
}
