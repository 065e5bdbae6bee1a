/** All counters of a tunnel in one stored value, because each value that is written costs the same, however small it is. */
import type { Counters } from "./outcomes.ts";
import type { MonthlyTraffic } from "./spending.ts";
import type { StoredBucket } from "./traffic.ts";
import type { UsageTotals } from "./usage.ts";

interface StoredCounters {
  usage?: UsageTotals;
  outcomes?: Counters;
  traffic?: StoredBucket[];
  /** By month and token. */
  spending: Map<string, MonthlyTraffic>;
  /** The number of a report of this value: it increases with each save. */
  sequence: number;
  /** When the next report is due; null: there is nothing to report. */
  reportAtMs: number | null;
  /** The saved state of `ReportPace`. */
  pace?: number;
}

const KEY = "counters";
/** Earlier versions stored each part by itself. */
const EARLIER_KEY = {
  usage: "usage",
  outcomes: "outcomes",
  traffic: "traffic",
  sequence: "report-sequence",
} as const;
const EARLIER_SPENDING_PREFIX = "spending:";

type Storage = Pick<DurableObjectStorage, "kv" | "put" | "sync">;

export class CounterStore {
  readonly #storage: Storage;
  #earlierKeys: string[] = [];

  constructor(storage: Storage) {
    this.#storage = storage;
  }

  load(): StoredCounters {
    return this.#storage.kv.get<StoredCounters>(KEY) ?? this.#loadEarlier();
  }

  /** Unconfirmed: no visitor's response waits for a disk. */
  save(counters: StoredCounters): void {
    void this.#storage.put(KEY, counters, { allowUnconfirmed: true });
    for (const key of this.#earlierKeys) this.#storage.kv.delete(key);
    this.#earlierKeys = [];
  }

  /** Resolves when everything that was saved is on disk. */
  sync(): Promise<void> {
    return this.#storage.sync();
  }

  #loadEarlier(): StoredCounters {
    const { kv } = this.#storage;
    const spending = [...kv.list<MonthlyTraffic>({ prefix: EARLIER_SPENDING_PREFIX })].map(
      ([key, traffic]): [string, MonthlyTraffic] => [
        key.slice(EARLIER_SPENDING_PREFIX.length),
        traffic,
      ],
    );
    const sequence = kv.get<number>(EARLIER_KEY.sequence);
    if (sequence !== undefined) {
      const spendingKeys = spending.map(([key]) => EARLIER_SPENDING_PREFIX + key);
      this.#earlierKeys = [...Object.values(EARLIER_KEY), ...spendingKeys];
    }
    return {
      usage: kv.get<UsageTotals>(EARLIER_KEY.usage),
      outcomes: kv.get<Counters>(EARLIER_KEY.outcomes),
      traffic: kv.get<StoredBucket[]>(EARLIER_KEY.traffic),
      spending: new Map(spending),
      sequence: (sequence ?? 0) + 1,
      // The alarm that an earlier version has set is for a report.
      reportAtMs: sequence === undefined ? null : Date.now(),
    };
  }
}
