/**
 * Delivers a relay's usage counts to the tunnels' objects. The counts are totals, so only the newest one of an association must
 * arrive: during a delivery the next count waits, and a newer one replaces it. One that could not be delivered is stored until it
 * arrives, because the relay reports the last count of an association once.
 */
import { AssociationUsage } from "../../protocol/relay/link.ts";
import { inParallel } from "../../shared/in-parallel.ts";
import { LimitedLog } from "../../shared/log.ts";
import { STORED_USAGE_MAX_MS } from "../limits.ts";

/** More than the associations whose last counts a relay keeps. Beyond it the oldest count is lost. */
const STORED_USAGE_MAX_COUNTS = 20_000;
const RETRIES_AT_ONCE = 32;

const lostCounts = new LimitedLog("error", "relayed_usage_lost");

export class UsageDelivery {
  readonly #sql: SqlStorage;
  readonly #send: (usage: AssociationUsage) => Promise<void>;
  /** The next count to deliver, by association; null: none. A key exists while a delivery is in progress. */
  readonly #next = new Map<string, AssociationUsage | null>();

  /** @param send rejects when the tunnel's object could not be reached. */
  constructor(sql: SqlStorage, send: (usage: AssociationUsage) => Promise<void>) {
    this.#sql = sql;
    this.#send = send;
    sql.exec(`create table if not exists undelivered_usage (
      sequence integer primary key autoincrement,
      association text not null unique,
      usage text not null,
      failed_at_ms integer not null
    )`);
  }

  /** Whether counts are stored that must be delivered again. */
  get hasUndelivered(): boolean {
    return this.#sql.exec("select 1 from undelivered_usage limit 1").toArray().length > 0;
  }

  /** Resolves when no delivery for this association is in progress. */
  async deliver(usage: AssociationUsage): Promise<void> {
    const association = toKey(usage);
    const isInProgress = this.#next.has(association);
    this.#next.set(association, usage);
    if (isInProgress) return;
    try {
      for (;;) {
        const newest = this.#next.get(association);
        if (!newest) return;
        this.#next.set(association, null);
        await this.#sendOrStore(association, newest);
      }
    } finally {
      this.#next.delete(association);
    }
  }

  /** Delivers the stored counts again. */
  async retry(nowMs: number): Promise<void> {
    this.#dropWhere("failed_at_ms < ?", nowMs - STORED_USAGE_MAX_MS);
    const stored = this.#sql
      .exec<{ association: string }>("select association from undelivered_usage order by sequence")
      .toArray()
      .map(({ association }) => association);
    await inParallel(RETRIES_AT_ONCE, stored, (association) => this.#retryNewest(association));
  }

  /** While others were delivered, a newer count may have arrived, or may have taken the place of the stored one. */
  async #retryNewest(association: string): Promise<void> {
    if (this.#next.has(association)) return;
    const [stored] = this.#sql
      .exec<{ usage: string }>(
        "select usage from undelivered_usage where association = ?",
        association,
      )
      .toArray();
    if (stored) await this.deliver(AssociationUsage.parse(JSON.parse(stored.usage)));
  }

  async #sendOrStore(association: string, usage: AssociationUsage): Promise<void> {
    try {
      await this.#send(usage);
    } catch {
      return this.#store(association, usage);
    }
    this.#sql.exec("delete from undelivered_usage where association = ?", association);
  }

  #store(association: string, usage: AssociationUsage): void {
    this.#sql.exec(
      `insert into undelivered_usage (association, usage, failed_at_ms) values (?, ?, ?)
       on conflict (association) do update set usage = excluded.usage`,
      association,
      JSON.stringify(usage),
      Date.now(),
    );
    const newest = "(select max(sequence) from undelivered_usage)";
    this.#dropWhere(`sequence <= ${newest} - ?`, STORED_USAGE_MAX_COUNTS);
  }

  #dropWhere(condition: string, value: number): void {
    const dropped = this.#sql.exec<{ usage: string }>(
      `delete from undelivered_usage where ${condition} returning usage`,
      value,
    );
    for (const { usage } of dropped) lostCounts.record({ usage: JSON.parse(usage) }, Date.now());
  }
}

function toKey({ source, tunnelId }: AssociationUsage): string {
  return `${source} ${tunnelId}`;
}
