/** The last agent's connection, in storage: a restarted object knows whether to expect an agent. */
import { GRACE_PERIOD_MS } from "./parked-requests.ts";

const KEY = "last-agent";

interface LastAgentState {
  /** When it disconnected; null: it was connected when the object last ran. */
  goneAtMs: number | null;
  /**
   * When the grace period begins; null: with the first visitor who finds no agent. Undefined in states of earlier versions:
   * at `goneAtMs`.
   */
  graceFromMs?: number | null;
  /** The object has noticed that it restarted and lost this agent. */
  isLossNoticed?: true;
}

type Storage = Pick<SyncKvStorage, "get" | "put" | "delete">;

export class LastAgent {
  readonly #kv: Storage;

  constructor(kv: Storage) {
    this.#kv = kv;
  }

  recordConnected(): void {
    this.#put({ goneAtMs: null, graceFromMs: null });
  }

  /** @param willReturn starts the grace period. */
  recordDisconnected(willReturn: boolean, nowMs: number): void {
    if (willReturn) this.#put({ goneAtMs: nowMs, graceFromMs: nowMs });
    else this.#kv.delete(KEY);
  }

  /**
   * The server stops, for a time that the object can't know. An agent that visitors could have waited for can reconnect only
   * afterwards, so the grace period begins with the first visitor after the next start.
   * @param stoppingSinceMs when the server began to stop, which disconnects agents.
   */
  recordServerStop(stoppingSinceMs: number): void {
    const state = this.#get();
    if (!state) return;
    const { goneAtMs } = state;
    const isExpected = goneAtMs === null || goneAtMs + GRACE_PERIOD_MS > stoppingSinceMs;
    if (isExpected) this.#put({ goneAtMs, graceFromMs: null });
  }

  /**
   * Called while no agent serves.
   * @returns whether the object restarted and lost its agent, and notices it now.
   */
  noticeLoss(): boolean {
    const state = this.#get();
    if (state?.goneAtMs !== null || state.isLossNoticed) return false;
    this.#put({ ...state, isLossNoticed: true });
    return true;
  }

  /** As far as was recorded: an object that restarted lost its agent without recording it. */
  get isConnected(): boolean {
    return this.#get()?.goneAtMs === null;
  }

  get disconnectedAtMs(): number | null {
    return this.#get()?.goneAtMs ?? null;
  }

  /**
   * For a visitor who finds no agent: since when visitors wait for the last one; undefined when it does not return.
   * If the object restarted and lost its agent, they wait from now on.
   */
  getGraceStart(nowMs: number): number | undefined {
    const state = this.#get();
    if (!state) return undefined;
    const { goneAtMs, graceFromMs = goneAtMs } = state;
    if (graceFromMs !== null) return graceFromMs;
    this.#put({ goneAtMs: goneAtMs ?? nowMs, graceFromMs: nowMs });
    return nowMs;
  }

  #get(): LastAgentState | undefined {
    return this.#kv.get<LastAgentState>(KEY);
  }

  #put(state: LastAgentState): void {
    this.#kv.put(KEY, state);
  }
}
