/**
 * Turns for the connections that transactions use. The transactions of one caller may all wait for the same row: they occupy
 * at most half of the connections, and those of others are not queued behind them. The server's own work, which has no caller,
 * needs no turn.
 */
import { SourceSlots } from "../../shared/bounds/source-slots.ts";

/** Transactions that wait for their turn; those of one caller are at most half of them. */
export const SESSIONS_WAITING_MAX = 1_024;

interface WaitingSession {
  caller: string;
  endWait: (isTurn: boolean) => void;
}

export class SessionTurns {
  readonly #connections: SourceSlots;
  readonly #places = new SourceSlots(SESSIONS_WAITING_MAX);
  readonly #waitMaxMs: number;
  /** In order of arrival. */
  readonly #waiting = new Set<WaitingSession>();

  constructor(options: { connections: number; waitMaxMs: number }) {
    this.#connections = new SourceSlots(options.connections);
    this.#waitMaxMs = options.waitMaxMs;
  }

  get waitingCount(): number {
    return this.#waiting.size;
  }

  /**
   * Waits for a turn. After it, call `end` once.
   * @param caller an organization, or the group of an address (`parseApplicationName`).
   * @param left resolves when the client has disconnected.
   * @returns false without a turn: too many wait already, the wait was too long, or the client has disconnected.
   */
  async begin(caller: string | undefined, left: Promise<void>): Promise<boolean> {
    if (caller === undefined || this.#connections.take(caller)) return true;
    if (!this.#places.take(caller)) return false;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const session: WaitingSession = {
      caller,
      endWait: (isTurn) => {
        this.#waiting.delete(session);
        resolve(isTurn);
      },
    };
    this.#waiting.add(session);
    const timer = setTimeout(session.endWait, this.#waitMaxMs, false);
    void left.then(() => session.endWait(false));
    const isTurn = await promise;
    clearTimeout(timer);
    this.#places.free(caller);
    return isTurn;
  }

  end(caller: string | undefined): void {
    if (caller === undefined) return;
    this.#connections.free(caller);
    for (const session of this.#waiting) {
      if (this.#connections.take(session.caller)) session.endWait(true);
    }
  }
}
