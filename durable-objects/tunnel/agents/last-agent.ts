/** The last agent's connection, in storage: a restarted object knows whether to expect an agent. */
import type { LastAgentState } from "./parked-requests.ts";

const KEY = "last-agent";

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

export class LastAgent {
  readonly #kv: Storage;

  constructor(kv: Storage) {
    this.#kv = kv;
  }

  recordConnected(): void {
    this.#kv.put<LastAgentState>(KEY, { goneAtMs: null });
  }

  /** @param willReturn starts the grace period. */
  recordDisconnected(willReturn: boolean, nowMs: number): void {
    if (willReturn) this.#kv.put<LastAgentState>(KEY, { goneAtMs: nowMs });
    else this.#kv.delete(KEY);
  }

  /** As far as was recorded: an object that restarted lost its agent without recording it. */
  get isConnected(): boolean {
    return this.#kv.get<LastAgentState>(KEY)?.goneAtMs === null;
  }

  get disconnectedAtMs(): number | null {
    return this.#kv.get<LastAgentState>(KEY)?.goneAtMs ?? null;
  }

  /**
   * For a visitor who finds no agent. If the object restarted and lost its agent, the grace period starts now,
   * with the first such visitor.
   */
  getStateForWaiting(nowMs: number): LastAgentState | undefined {
    if (this.isConnected) this.recordDisconnected(true, nowMs);
    return this.#kv.get<LastAgentState>(KEY);
  }
}
