/**
 * What the other objects of a tunnel have counted, as far as it has been added to the first one's counters. Reports are
 * totals and may be repeated or late: only the increase since the newest one counts.
 */
import type { TokenUsage, TunnelReport } from "../../rpc.ts";
import type { Counters } from "../metrics/outcomes.ts";

/** The totals of one object, by name: `bytes-in`, `requests:2xx`, `2026-11:<token>:bytes`. */
type Totals = Map<string, number>;

export type ShardReport = Pick<
  TunnelReport,
  "bytesIn" | "bytesOut" | "requests" | "counters" | "spending"
>;

const PREFIX = "shard-usage:";

type Storage = Pick<SyncKvStorage, "get" | "put">;

export class ShardUsage {
  readonly #kv: Storage;

  constructor(kv: Storage) {
    this.#kv = kv;
  }

  /** @returns by how much a report exceeds the earlier ones. The caller counts and saves it in the same turn. */
  takeIncrease(shard: number, report: ShardReport): ShardReport {
    const key = `${PREFIX}${shard}`;
    const totals: Totals = this.#kv.get<Totals>(key) ?? new Map<string, number>();
    const take = (name: string, total: number) => takeIncrease(totals, name, total);
    const increase = {
      bytesIn: take("bytes-in", report.bytesIn),
      bytesOut: take("bytes-out", report.bytesOut),
      requests: take("requests", report.requests),
      counters: takeCounters(report.counters, take),
      spending: report.spending.map((usage) => takeSpending(usage, take)),
    };
    dropEarlierMonths(totals, report.spending);
    this.#kv.put<Totals>(key, totals);
    return increase;
  }
}

type Take = (name: string, total: number) => number;

function takeIncrease(totals: Totals, name: string, total: number): number {
  const known = totals.get(name) ?? 0;
  if (total <= known) return 0;
  totals.set(name, total);
  return total - known;
}

function takeCounters(counters: Counters, take: Take): Counters {
  const entries = Object.entries(counters);
  return Object.fromEntries(entries.map(([name, total]) => [name, take(`counter:${name}`, total)]));
}

function takeSpending({ tokenNonce, month, bytes, requests }: TokenUsage, take: Take): TokenUsage {
  const name = `${SPENDING}${month}:${tokenNonce}`;
  return {
    tokenNonce,
    month,
    bytes: take(`${name}:bytes`, bytes),
    requests: take(`${name}:requests`, requests),
  };
}

const SPENDING = "spending:";

/** The month before the newest one may still be reported late; earlier ones are complete. */
function dropEarlierMonths(totals: Totals, spending: TokenUsage[]): void {
  const months = new Set(spending.map(({ month }) => month));
  for (const name of totals.keys()) {
    if (name.startsWith(SPENDING)) months.add(name.slice(SPENDING.length, SPENDING.length + 7));
  }
  const kept = [...months].sort().slice(-2);
  for (const name of totals.keys()) {
    const month = name.slice(SPENDING.length, SPENDING.length + 7);
    if (name.startsWith(SPENDING) && !kept.includes(month)) totals.delete(name);
  }
}
