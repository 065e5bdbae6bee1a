/**
 * The traffic that a relay carried, counted once. A relay reports the totals of each association, and repeats a
 * report when it does not know whether it arrived: only the increase since the last report counts.
 */
import type { AssociationUsage } from "../../../protocol/relay/link.ts";
import { dropOldest } from "../../../shared/bounds/bounded-map.ts";

type RelayedTotals = Pick<AssociationUsage, "connections" | "bytesIn" | "bytesOut">;

const KEY = "relayed-usage";
/** Only one association of a tunnel is alive; ended ones may still send their last report. */
const SOURCES_MAX = 64;

type Storage = Pick<SyncKvStorage, "get" | "put">;

export class RelayedUsage {
  readonly #kv: Storage;
  /** By source, the least recent report first. */
  readonly #sources: Map<string, RelayedTotals>;

  constructor(kv: Storage) {
    this.#kv = kv;
    this.#sources = kv.get<Map<string, RelayedTotals>>(KEY) ?? new Map<string, RelayedTotals>();
  }

  /** @returns by how much a report exceeds the last one. The caller counts and saves it in the same turn. */
  takeIncrease({ source, connections, bytesIn, bytesOut }: AssociationUsage): RelayedTotals {
    const known = this.#sources.get(source) ?? { connections: 0, bytesIn: 0, bytesOut: 0 };
    const newest = {
      connections: Math.max(known.connections, connections),
      bytesIn: Math.max(known.bytesIn, bytesIn),
      bytesOut: Math.max(known.bytesOut, bytesOut),
    };
    this.#sources.delete(source);
    this.#sources.set(source, newest);
    dropOldest(this.#sources, SOURCES_MAX);
    this.#kv.put(KEY, this.#sources);
    return {
      connections: newest.connections - known.connections,
      bytesIn: newest.bytesIn - known.bytesIn,
      bytesOut: newest.bytesOut - known.bytesOut,
    };
  }
}
