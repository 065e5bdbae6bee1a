/**
 * The traffic that a relay carried, counted once. A relay reports the totals of each association, and repeats a
 * report when it does not know whether it arrived: only the increase since the last report counts.
 */
import type { AssociationUsage } from "../../../protocol/relay/link.ts";
import { dropOldest } from "../../../shared/bounds/bounded-map.ts";
import { DAY_MS } from "../../../shared/time.ts";
import { STORED_USAGE_MAX_MS } from "../../limits.ts";

type RelayedTotals = Pick<AssociationUsage, "connections" | "bytesIn" | "bytesOut">;

const KEY = "relayed-usage";
/**
 * Only one association of a tunnel is alive, but a relay reports the totals of those that ended in the last minutes again when its
 * link was lost. The totals of one that is not stored any more would count twice.
 */
const SOURCES_MAX = 1_000;
/** Longer than a report can be late. */
const SOURCE_KEEP_MS = STORED_USAGE_MAX_MS + DAY_MS;

interface StoredTotals extends RelayedTotals {
  /** Absent when an earlier version stored them. */
  reportedAtMs?: number;
}

type Storage = Pick<SyncKvStorage, "get" | "put">;

export class RelayedUsage {
  readonly #kv: Storage;
  /** By source, the least recent report first. */
  readonly #sources: Map<string, StoredTotals>;

  constructor(kv: Storage) {
    this.#kv = kv;
    this.#sources = kv.get<Map<string, StoredTotals>>(KEY) ?? new Map<string, StoredTotals>();
  }

  /** @returns by how much a report exceeds the last one. The caller counts and saves it in the same turn. */
  takeIncrease(report: AssociationUsage, nowMs: number): RelayedTotals {
    const { source, connections, bytesIn, bytesOut } = report;
    const known = this.#sources.get(source) ?? { connections: 0, bytesIn: 0, bytesOut: 0 };
    if (connections === 0 && bytesIn === 0 && bytesOut === 0) return report;
    const newest = {
      connections: Math.max(known.connections, connections),
      bytesIn: Math.max(known.bytesIn, bytesIn),
      bytesOut: Math.max(known.bytesOut, bytesOut),
      reportedAtMs: nowMs,
    };
    this.#sources.delete(source);
    this.#sources.set(source, newest);
    this.#dropEnded(nowMs);
    this.#kv.put(KEY, this.#sources);
    return {
      connections: newest.connections - known.connections,
      bytesIn: newest.bytesIn - known.bytesIn,
      bytesOut: newest.bytesOut - known.bytesOut,
    };
  }

  #dropEnded(nowMs: number): void {
    for (const [source, { reportedAtMs = nowMs }] of this.#sources) {
      if (nowMs - reportedAtMs <= SOURCE_KEEP_MS) break;
      this.#sources.delete(source);
    }
    dropOldest(this.#sources, SOURCES_MAX);
  }
}
