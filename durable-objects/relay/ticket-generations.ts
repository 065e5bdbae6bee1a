/**
 * The generations of a relay's tickets, of revocations and of allowlists. A generation is the time, or later: it increases even when
 * the clock was set back, so that a newer agent replaces an older one, and a revocation includes all tickets from before it.
 */
const KEY = "ticket-generation";

type Storage = Pick<SyncKvStorage, "get" | "put">;

export class TicketGenerations {
  readonly #kv: Storage;

  constructor(kv: Storage) {
    this.#kv = kv;
  }

  /** @param nowMs since the epoch. @returns a generation that is higher than all earlier ones. */
  take(nowMs: number): number {
    const generation = Math.max(nowMs, this.#newest + 1);
    this.#kv.put<number>(KEY, generation);
    return generation;
  }

  /**
   * @param untilMs the time of the event for which tickets are revoked, or the largest integer for all tickets, later ones too.
   * @param nowMs when the revocation arrives.
   * @returns the highest generation that it includes. Later tickets have a higher one.
   */
  revokeUntil(untilMs: number, nowMs: number): number {
    if (untilMs === Number.MAX_SAFE_INTEGER) return untilMs;
    const newest = this.#newest;
    // The clock was set back: tickets from before the event have generations later than its time.
    const until = newest > nowMs ? Math.max(newest, untilMs) : untilMs;
    if (until > newest) this.#kv.put<number>(KEY, until);
    return until;
  }

  get #newest(): number {
    return this.#kv.get<number>(KEY) ?? 0;
  }
}
