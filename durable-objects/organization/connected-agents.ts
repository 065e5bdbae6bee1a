/**
 * The agents that are connected to an organization's tunnels, as the tunnels have reported them. An agent that
 * is lost together with its tunnel's object sends no report, so an entry without a recent report is stale until
 * its tunnel has been asked.
 */
import type { Presence, ServingAgent } from "../rpc.ts";
import { HOUR_MS } from "../../shared/time.ts";

/** An entry is not stale for this long after its tunnel's last report. */
export const PRESENCE_FRESH_MS = 20_000;
/** Tunnels that are asked for one list: the platform bounds the calls of one event. */
const PRESENCE_REFRESH_MAX_TUNNELS = 5_000;
/** How long a departure is stored, so that a late report of the agent's arrival changes nothing. */
export const DEPARTURE_RETENTION_MS = HOUR_MS;

export interface ConnectedAgent extends ServingAgent {
  tunnelId: string;
}

const SELECT = `select tunnel_id as tunnelId, agent_id as agentId, remote_ip as remoteIp,
  connected_at_ms as connectedAtMs from roster where agent_id is not null`;

export class ConnectedAgents {
  readonly #sql: SqlStorage;
  /** In memory on purpose: after a restart of this object every entry is stale. */
  readonly #reportedAtMs = new Map<string, number>();

  constructor(sql: SqlStorage) {
    this.#sql = sql;
    sql.exec(`create table if not exists roster (
      tunnel_id text primary key,
      sequence integer not null,
      agent_id text,
      remote_ip text,
      connected_at_ms integer,
      told_at_ms integer not null
    ) without rowid`);
  }

  /** A report that arrives late changes nothing. */
  apply({ tunnelId, sequence, agent }: Presence, nowMs: number): void {
    this.#reportedAtMs.set(tunnelId, nowMs);
    this.#sql.exec(
      `insert into roster (tunnel_id, sequence, agent_id, remote_ip, connected_at_ms, told_at_ms)
       values (?, ?, ?, ?, ?, ?)
       on conflict (tunnel_id) do update set sequence = excluded.sequence, agent_id = excluded.agent_id,
         remote_ip = excluded.remote_ip, connected_at_ms = excluded.connected_at_ms,
         told_at_ms = excluded.told_at_ms
       where excluded.sequence > roster.sequence`,
      tunnelId,
      sequence,
      agent?.agentId ?? null,
      agent?.remoteIp ?? null,
      agent?.connectedAtMs ?? null,
      nowMs,
    );
  }

  /** Lists a tunnel among those that recently had an agent, although it may never have had one. */
  addTunnel(tunnelId: string, nowMs: number): void {
    this.#sql.exec(
      `insert into roster (tunnel_id, sequence, told_at_ms) values (?, 0, ?)
       on conflict (tunnel_id) do update set told_at_ms = excluded.told_at_ms
       where roster.agent_id is null`,
      tunnelId,
      nowMs,
    );
  }

  /** For a tunnel that has never had an agent, or that was deleted. */
  remove(tunnelId: string): void {
    this.#reportedAtMs.delete(tunnelId);
    this.#sql.exec("delete from roster where tunnel_id = ?", tunnelId);
  }

  /** Newest first. */
  list(): ConnectedAgent[] {
    return this.#query(`${SELECT} order by connected_at_ms desc, agent_id`);
  }

  /** Tunnels that have an agent or recently had one, and others that were added. */
  listTunnelIds(): string[] {
    const rows = this.#sql.exec<{ id: string }>("select tunnel_id as id from roster");
    return [...rows].map(({ id }) => id);
  }

  find(agentId: string): ConnectedAgent | undefined {
    return this.#query(`${SELECT} and agent_id = ?`, agentId)[0];
  }

  /** @returns the tunnels that must be asked before these entries may be listed. */
  findStaleTunnels(entries: ConnectedAgent[], nowMs: number): string[] {
    const freshSinceMs = nowMs - PRESENCE_FRESH_MS;
    return entries
      .map(({ tunnelId }) => tunnelId)
      .filter((id) => (this.#reportedAtMs.get(id) ?? -Infinity) < freshSinceMs)
      .slice(0, PRESENCE_REFRESH_MAX_TUNNELS);
  }

  /** Removes departures that are too old for a late report to arrive. */
  removeDeparted(nowMs: number): void {
    const beforeMs = nowMs - DEPARTURE_RETENTION_MS;
    this.#sql.exec("delete from roster where agent_id is null and told_at_ms < ?", beforeMs);
    for (const [id, reportedAtMs] of this.#reportedAtMs) {
      if (reportedAtMs < beforeMs) this.#reportedAtMs.delete(id);
    }
  }

  #query(query: string, ...values: string[]): ConnectedAgent[] {
    return [...this.#sql.exec(query, ...values)] as unknown as ConnectedAgent[];
  }
}
