/**
 * The one alarm of an object, shared by all parts that need one: it fires for the earliest, and then each part
 * schedules its next one.
 *
 * The platform repeats a failed alarm only if no other alarm was set meanwhile, and here another part usually
 * sets one. So a failure schedules an alarm of its own.
 */
import { log } from "../../shared/log.ts";
import { MINUTE_MS } from "../../shared/time.ts";

/** How soon a tunnel retries what failed: the wait doubles from the first of these to the second. */
export const ALARM_RETRY_MIN_MS = 5_000;
export const ALARM_RETRY_MAX_MS = MINUTE_MS;

/** @returns the time to set the alarm to; null: it is already early enough. */
export function computeNextAlarm(scheduledAtMs: number | null, requestedMs: number): number | null {
  return scheduledAtMs !== null && scheduledAtMs <= requestedMs ? null : requestedMs;
}

/** unconfirmed: a visitor's response must not wait for a timer to be on disk. */
type Durability = "confirmed" | "unconfirmed";

interface AlarmRequest {
  atMs: number;
  durability: Durability;
}

type Storage = Pick<DurableObjectStorage, "getAlarm" | "setAlarm">;

export class Alarm {
  readonly #storage: Storage;
  /** undefined: not read yet. An earlier instance of the object may have set the alarm. */
  #scheduledAtMs: number | null | undefined;
  /** The earliest requested time, and the stronger durability, while the alarm is being read. */
  #requested: AlarmRequest | undefined;
  #consecutiveFailures = 0;
  #hasFailed = false;

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  /** Fires at this time or earlier. */
  scheduleBy(atMs: number, durability: Durability): void {
    // An alarm for now is early enough whatever is stored, so it need not be read.
    if (this.#scheduledAtMs === undefined && atMs > Date.now()) {
      return this.#readThenSchedule(atMs, durability);
    }
    const nextMs = computeNextAlarm(this.#scheduledAtMs ?? null, atMs);
    if (nextMs === null) return;
    void this.#set(nextMs, durability);
  }

  /** Whether a part's work has failed since the alarm fired. */
  get hasFailed(): boolean {
    return this.#hasFailed;
  }

  /** Called when the alarm fires: from then on none is set. */
  markFired(): void {
    this.#scheduledAtMs = null;
    this.#consecutiveFailures = this.#hasFailed ? this.#consecutiveFailures + 1 : 0;
    this.#hasFailed = false;
  }

  /** Runs one part's work and never throws: the failure of one part must not stop the others. */
  async attempt(work: () => Promise<void> | void): Promise<void> {
    try {
      await work();
    } catch (cause) {
      logFailure(cause);
      this.#hasFailed = true;
      const backoffMs = ALARM_RETRY_MIN_MS * 2 ** this.#consecutiveFailures;
      this.scheduleBy(Date.now() + Math.min(backoffMs, ALARM_RETRY_MAX_MS), "confirmed");
    }
  }

  #readThenSchedule(atMs: number, durability: Durability): void {
    const requested = this.#requested;
    if (requested) {
      requested.atMs = Math.min(requested.atMs, atMs);
      if (durability === "confirmed") requested.durability = durability;
      return;
    }
    this.#requested = { atMs, durability };
    void this.#readScheduled(this.#requested);
  }

  async #readScheduled(requested: AlarmRequest): Promise<void> {
    try {
      const scheduledAtMs = await this.#storage.getAlarm();
      if (this.#scheduledAtMs === undefined) this.#scheduledAtMs = scheduledAtMs;
    } catch (cause) {
      logFailure(cause);
      requested.atMs = Date.now();
    }
    this.#requested = undefined;
    this.scheduleBy(requested.atMs, requested.durability);
  }

  async #set(atMs: number, durability: Durability): Promise<void> {
    this.#scheduledAtMs = atMs;
    const allowUnconfirmed = durability === "unconfirmed";
    try {
      await this.#storage.setAlarm(atMs, { allowUnconfirmed });
    } catch (cause) {
      logFailure(cause);
      // The next request reads which alarm is stored.
      if (this.#scheduledAtMs === atMs) this.#scheduledAtMs = undefined;
    }
  }
}

function logFailure(cause: unknown): void {
  log("error", "alarm_failed", { cause: String(cause) });
}
