/**
 * The agents that are connected to an organization's tunnels, as the tunnels have reported them. An agent that
 * is lost together with its tunnel's object sends no report, so an entry without a recent report is stale until
 * its tunnel has been asked.
 */
import type { Presence, ServingAgent } from "../rpc.ts";
import { BoundedMap } from "../../shared/bounds/bounded-map.ts";
import { HOUR_MS, MINUTE_MS } from "../../shared/time.ts";

/** An entry is not stale for this long after its tunnel's last report. */
export const PRESENCE_FRESH_MS = 20_000;
/**
 * Tunnels that have reported, but not recently, that are asked for one list. A call wakes a tunnel's object, and metrics
 * are read every few seconds: without this bound, all objects of a large organization would stay in memory.
 */
export const PRESENCE_REFRESH_MAX_REPORTED = 100;
/** How long a departure is stored, so that a late report of the agent's arrival changes nothing. */
export const DEPARTURE_RETENTION_MS = HOUR_MS;
/** How often older departures are removed while tunnels report: each removal reads all entries. */
const DEPARTURE_SWEEP_MS = 10 * MINUTE_MS;
/** Tunnels of all organizations in an isolate whose last report is remembered, in some 150 bytes each. */
export const REPORT_TIMES_MAX_TUNNELS = 50_000;

/** When each tunnel reported last, or did not answer after that, by its id. */
export type ReportTimes = BoundedMap<string, number>;

export function createReportTimes(): ReportTimes {
  return new BoundedMap(REPORT_TIMES_MAX_TUNNELS);
}

export interface ConnectedAgent extends ServingAgent {
  tunnelId: string;
}

const SELECT = `select tunnel_id as tunnelId, agent.value ->> 'agentId' as agentId,
  agent.value ->> 'remoteIp' as remoteIp, agent.value ->> 'connectedAtMs' as connectedAtMs
  from presences, json_each(agents) as agent`;
/** The format of earlier versions: one agent of a tunnel, in a table with another name. */
const COPY_ROSTER = `insert or ignore into presences
  select tunnel_id, sequence, case when agent_id is null then '[]' else json_array(json_object(
    'agentId', agent_id, 'remoteIp', remote_ip, 'connectedAtMs', connected_at_ms)) end, told_at_ms
  from roster`;

export class ConnectedAgents {
  readonly #sql: SqlStorage;
  readonly #reportTimes: ReportTimes;
  #sweptAtMs = -Infinity;

  /**
   * @param reportTimes outlive this object, which is evicted ten seconds after its last call: a list would otherwise wake
   *   every tunnel again. They are not stored, because agents may be lost with the isolate: then every entry is stale.
   */
  constructor(sql: SqlStorage, reportTimes: ReportTimes) {
    this.#sql = sql;
    this.#reportTimes = reportTimes;
    // When a row was last changed: the name `told_at_ms` is part of the stored format.
    sql.exec(`create table if not exists presences (
      tunnel_id text primary key,
      sequence integer not null,
      agents text not null,
      told_at_ms integer not null
    ) without rowid`);
    const roster = sql.exec("select name from sqlite_master where name = 'roster'");
    if (roster.toArray().length === 0) return;
    sql.exec(COPY_ROSTER);
    sql.exec("drop table roster");
  }

  /** A report that arrives late changes nothing. */
  apply({ tunnelId, sequence, agents }: Presence, nowMs: number): void {
    this.#sweepIfDue(nowMs);
    this.#reportTimes.set(tunnelId, nowMs);
    this.#sql.exec(
      `insert into presences (tunnel_id, sequence, agents, told_at_ms) values (?, ?, ?, ?)
       on conflict (tunnel_id) do update set sequence = excluded.sequence, agents = excluded.agents,
         told_at_ms = excluded.told_at_ms
       where excluded.sequence > presences.sequence`,
      tunnelId,
      sequence,
      JSON.stringify(agents),
      nowMs,
    );
  }

  /** A tunnel that has reported before could not be asked: the next lists ask others first. */
  postpone(tunnelId: string, nowMs: number): void {
    if (this.#reportTimes.has(tunnelId)) this.#reportTimes.set(tunnelId, nowMs);
  }

  /** Lists a tunnel among those that recently had an agent, although it may never have had one. */
  addTunnel(tunnelId: string, nowMs: number): void {
    this.#sweepIfDue(nowMs);
    this.#sql.exec(
      `insert into presences (tunnel_id, sequence, agents, told_at_ms) values (?, 0, '[]', ?)
       on conflict (tunnel_id) do update set told_at_ms = excluded.told_at_ms
       where presences.agents = '[]'`,
      tunnelId,
      nowMs,
    );
  }

  /** For a tunnel that has never had an agent, or that was deleted. */
  remove(tunnelId: string): void {
    this.#reportTimes.delete(tunnelId);
    this.#sql.exec("delete from presences where tunnel_id = ?", tunnelId);
  }

  /** Newest first. */
  list(): ConnectedAgent[] {
    return this.#query(`${SELECT} order by connectedAtMs desc, agentId`);
  }

  /** Tunnels that have an agent or recently had one, and others that were added. */
  listTunnelIds(nowMs: number): string[] {
    this.removeDeparted(nowMs);
    const rows = this.#sql.exec<{ id: string }>("select tunnel_id as id from presences");
    return [...rows].map(({ id }) => id);
  }

  find(agentId: string): ConnectedAgent | undefined {
    return this.#query(`${SELECT} where agentId = ?`, agentId)[0];
  }

  /**
   * @returns the tunnels to ask before these entries are listed: all without a report since the isolate was started, and
   *   those whose reports are oldest.
   */
  findStaleTunnels(entries: ConnectedAgent[], nowMs: number): string[] {
    // A pool has several agents.
    const tunnelIds = [...new Set(entries.map(({ tunnelId }) => tunnelId))];
    const unreported = tunnelIds.filter((id) => !this.#reportTimes.has(id));
    const stale = tunnelIds
      .map((id) => ({ id, atMs: this.#reportTimes.get(id) ?? nowMs }))
      // The clock may have been set back.
      .filter(({ atMs }) => Math.abs(nowMs - atMs) > PRESENCE_FRESH_MS)
      .sort((a, b) => a.atMs - b.atMs)
      .map(({ id }) => id);
    return [...unreported, ...stale.slice(0, PRESENCE_REFRESH_MAX_REPORTED)];
  }

  /** Removes departures that are too old for a late report to arrive. */
  removeDeparted(nowMs: number): void {
    this.#sweptAtMs = nowMs;
    const beforeMs = nowMs - DEPARTURE_RETENTION_MS;
    const removed = this.#sql.exec<{ id: string }>(
      "delete from presences where agents = '[]' and told_at_ms < ? returning tunnel_id as id",
      beforeMs,
    );
    for (const { id } of removed.toArray()) this.#reportTimes.delete(id);
  }

  #sweepIfDue(nowMs: number): void {
    // The clock may have been set back.
    if (Math.abs(nowMs - this.#sweptAtMs) >= DEPARTURE_SWEEP_MS) this.removeDeparted(nowMs);
  }

  #query(query: string, ...values: string[]): ConnectedAgent[] {
    return [...this.#sql.exec(query, ...values)] as unknown as ConnectedAgent[];
  }
}
