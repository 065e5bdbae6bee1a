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
export function computeNextAlarm(setToMs: number | null, wantedMs: number): number | null {
  return setToMs !== null && setToMs <= wantedMs ? null : wantedMs;
}

type Storage = Pick<DurableObjectStorage, "getAlarm" | "setAlarm">;

export class Alarm {
  readonly #storage: Storage;
  /** undefined: it may be set from an earlier life of the object. */
  #scheduledAtMs: number | null | undefined;
  #wantedMs = Infinity;
  /** How often in succession something failed that was due. */
  #consecutiveFailures = 0;
  #hasFailed = false;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /**
   * Wakes the object at this time or earlier.
   * @param how unconfirmed: a visitor's answer must not wait for a timer to be on disk.
   */
  scheduleBy(atMs: number, how: "confirmed" | "unconfirmed"): void {
    // What is due now can't be too late.
    if (this.#scheduledAtMs === undefined && atMs > Date.now()) return this.#readThenSchedule(atMs);
    const nextMs = computeNextAlarm(this.#scheduledAtMs ?? null, atMs);
    if (nextMs === null) return;
    this.#scheduledAtMs = nextMs;
    void this.#storage.setAlarm(nextMs, { allowUnconfirmed: how === "unconfirmed" });
  }

  /** It went off: it is set to nothing now. */
  markFired(): void {
    this.#scheduledAtMs = null;
    this.#consecutiveFailures = this.#hasFailed ? this.#consecutiveFailures + 1 : 0;
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
      const waitMs = Math.min(ALARM_RETRY_MIN_MS * 2 ** this.#consecutiveFailures, ALARM_RETRY_MAX_MS);
      this.scheduleBy(Date.now() + waitMs, "confirmed");
    }
  }

  #readThenSchedule(atMs: number): void {
    const isAsking = this.#wantedMs !== Infinity;
    this.#wantedMs = Math.min(this.#wantedMs, atMs);
    if (!isAsking) void this.#readScheduled();
  }

  async #readScheduled(): Promise<void> {
    const setToMs = await this.#storage.getAlarm();
    this.#scheduledAtMs ??= setToMs;
    this.scheduleBy(this.#wantedMs, "unconfirmed");
    this.#wantedMs = Infinity;
  }
}
