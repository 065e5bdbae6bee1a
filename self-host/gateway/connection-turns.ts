/**
 * Turns for the connections of a pool. The queries of one caller may all be slow, and its transactions may all wait for the
 * same row: they occupy at most half of the connections, and those of others are not queued behind them. The server's own
 * work, which has no caller, needs no turn.
 */
import { SourceSlots } from "../../shared/bounds/source-slots.ts";

/** Why there is no turn: too many wait already, the wait was too long, or the client has disconnected. */
export type MissedTurn = "too_many" | "too_late" | "disconnected";

type EndWait = (outcome: "turn" | MissedTurn) => void;

export class ConnectionTurns {
  readonly #connections: SourceSlots;
  readonly #places: SourceSlots;
  readonly #waitMaxMs: number;
  /** By caller, each queue in order of arrival and never empty. The caller whose last turn was the longest ago is first. */
  readonly #waiting = new Map<string, Set<EndWait>>();

  /** @param options.waitingMax how many can wait; those of one caller are at most half of them. */
  constructor(options: { connections: number; waitingMax: number; waitMaxMs: number }) {
    this.#connections = new SourceSlots(options.connections);
    this.#places = new SourceSlots(options.waitingMax);
    this.#waitMaxMs = options.waitMaxMs;
  }

  get waitingCount(): number {
    return this.#places.taken;
  }

  /**
   * Waits for a turn. After it, call `end` once.
   * @param caller an organization, or the group of an address (`parseApplicationName`).
   * @param disconnected resolves when the client has disconnected.
   */
  async begin(
    caller: string | undefined,
    disconnected: Promise<void>,
  ): Promise<"turn" | MissedTurn> {
    if (caller === undefined || this.#connections.take(caller)) return "turn";
    if (!this.#places.take(caller)) return "too_many";
    const { promise, resolve } = Promise.withResolvers<"turn" | MissedTurn>();
    const queue = this.#waiting.get(caller) ?? new Set();
    const endWait: EndWait = (outcome) => {
      if (!queue.delete(endWait)) return;
      if (queue.size === 0) this.#waiting.delete(caller);
      this.#places.free(caller);
      clearTimeout(timer);
      resolve(outcome);
    };
    this.#waiting.set(caller, queue.add(endWait));
    const timer = setTimeout(endWait, this.#waitMaxMs, "too_late");
    void disconnected.then(() => endWait("disconnected"));
    return promise;
  }

  end(caller: string | undefined): void {
    if (caller === undefined) return;
    this.#connections.free(caller);
    for (const [waiting, queue] of this.#waiting) {
      if (!this.#connections.take(waiting)) continue;
      const [endWait] = queue;
      endWait!("turn");
      if (queue.size === 0) continue;
      this.#waiting.delete(waiting);
      this.#waiting.set(waiting, queue);
    }
  }
}
