/**
 * The one alarm of an object, for all who wait for something: it goes off for whoever is first, and each then
 * says again what it waits for.
 *
 * The platform repeats an alarm that failed only where no other was set meanwhile, and here somebody always
 * waits: what fails is tried again by an alarm of its own.
 */

/** When a tunnel does again what failed: from the first of these on, each time after twice as long. */
export const ALARM_RETRY_MIN_MS = 5_000;
export const ALARM_RETRY_MAX_MS = 60_000;

/** @returns when it is to be set to; null: it is early enough as it is. */
export function nextAlarm(setToMs: number | null, wantedMs: number): number | null {
  return setToMs !== null && setToMs <= wantedMs ? null : wantedMs;
}

type Storage = Pick<DurableObjectStorage, "getAlarm" | "setAlarm">;

export class Alarm {
  readonly #storage: Storage;
  /** undefined: it may be set from an earlier life of the object. */
  #setToMs: number | null | undefined;
  #wantedMs = Infinity;
  /** How often in succession something failed that was due. */
  #failures = 0;
  #hasFailed = false;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /**
   * Wakes the object at this time or earlier.
   * @param how unconfirmed: a visitor's answer must not wait for a timer to be on disk.
   */
  by(atMs: number, how: "confirmed" | "unconfirmed"): void {
    // What is due now can't be too late.
    if (this.#setToMs === undefined && atMs > Date.now()) return this.#askFirst(atMs);
    const nextMs = nextAlarm(this.#setToMs ?? null, atMs);
    if (nextMs === null) return;
    this.#setToMs = nextMs;
    void this.#storage.setAlarm(nextMs, { allowUnconfirmed: how === "unconfirmed" });
  }

  /** It went off: it is set to nothing now. */
  wentOff(): void {
    this.#setToMs = null;
    this.#failures = this.#hasFailed ? this.#failures + 1 : 0;
    this.#hasFailed = false;
  }

  /** Does a part of what is due, and never throws: one part's failure is none of the others'. */
  async attempt(due: () => Promise<void> | void): Promise<void> {
    try {
      await due();
    } catch (cause) {
      console.error(
        JSON.stringify({ level: "error", event: "alarm_failed", cause: String(cause) }),
      );
      this.#hasFailed = true;
      const waitMs = Math.min(ALARM_RETRY_MIN_MS * 2 ** this.#failures, ALARM_RETRY_MAX_MS);
      this.by(Date.now() + waitMs, "confirmed");
    }
  }

  #askFirst(atMs: number): void {
    const isAsking = this.#wantedMs !== Infinity;
    this.#wantedMs = Math.min(this.#wantedMs, atMs);
    if (!isAsking) void this.#ask();
  }

  async #ask(): Promise<void> {
    const setToMs = await this.#storage.getAlarm();
    this.#setToMs ??= setToMs;
    this.by(this.#wantedMs, "unconfirmed");
    this.#wantedMs = Infinity;
  }
}
