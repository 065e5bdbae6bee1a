/**
 * Look-ups of names in the database, limited so that a flood of random names causes only a few queries: names are looked up in
 * batches, one batch at a time, and names that were not found are remembered for a while.
 */
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { isAhead } from "../../shared/time.ts";

export const LOOK_UP_BATCH_NAMES = 200;
/** The shortest time between the starts of two batches. */
const LOOK_UP_INTERVAL_MS = 100;
/** Names that wait for their look-up, or for its result. */
export const LOOK_UPS_PENDING_MAX = 1_000;
/** Few: strangers fill it, and each garbage collection traces all of it. */
const MISSES_MAX = 1_000;
export const LOOK_UP_MISS_MS = 10_000;

type Pending<Found> = PromiseWithResolvers<Found | null>;

export class LookUps<Found> {
  /** @returns only the names that exist. */
  readonly #findAll: (names: string[]) => Promise<Map<string, Found>>;
  /** Names that do not exist, each with the time until which this is remembered. */
  readonly #missesUntilMs = new BoundedMap<string, number>(MISSES_MAX);
  /** Those that wait, in the order of their arrival. */
  readonly #pending = new Map<string, Pending<Found>>();
  #isRunning = false;
  #nextBatchAtMs = 0;

  constructor(findAll: (names: string[]) => Promise<Map<string, Found>>) {
    this.#findAll = findAll;
  }

  /**
   * @returns null when the name does not exist; "busy" when too many names are pending.
   * @throws whatever the query throws.
   */
  find(name: string): Promise<Found | null | "busy"> {
    const missUntilMs = this.#missesUntilMs.get(name) ?? 0;
    if (isAhead(missUntilMs, LOOK_UP_MISS_MS, Date.now())) return Promise.resolve(null);
    const earlier = this.#pending.get(name);
    if (earlier) return earlier.promise;
    if (this.#pending.size >= LOOK_UPS_PENDING_MAX) return Promise.resolve("busy");
    const pending: Pending<Found> = Promise.withResolvers();
    this.#pending.set(name, pending);
    if (!this.#isRunning) void this.#run();
    return pending.promise;
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    while (this.#pending.size > 0) {
      // Never longer, even if the clock was set back.
      const waitMs = Math.min(this.#nextBatchAtMs - Date.now(), LOOK_UP_INTERVAL_MS);
      if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
      this.#nextBatchAtMs = Date.now() + LOOK_UP_INTERVAL_MS;
      await this.#lookUpBatch([...this.#pending].slice(0, LOOK_UP_BATCH_NAMES));
    }
    this.#isRunning = false;
  }

  async #lookUpBatch(batch: [name: string, pending: Pending<Found>][]): Promise<void> {
    try {
      const found = await this.#findAll(batch.map(([name]) => name));
      for (const [name, { resolve }] of batch) {
        const result = found.get(name) ?? null;
        if (result === null) this.#missesUntilMs.set(name, Date.now() + LOOK_UP_MISS_MS);
        resolve(result);
      }
    } catch (error) {
      for (const [, { reject }] of batch) reject(error);
    }
    for (const [name] of batch) this.#pending.delete(name);
  }
}
