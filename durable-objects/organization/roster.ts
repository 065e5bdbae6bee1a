/**
 * Which agents are connected, as their tunnels have told it. An agent that went down with its tunnel's
 * object said nothing: whoever was not heard of lately is in doubt until its tunnel was asked.
 */
import type { Attendance, PresentAgent } from "../rpc.ts";

/** A tunnel that was heard of within this time is not asked again whether its agent is there. */
export const ATTENDANCE_FRESH_MS = 20_000;
/** Tunnels that one list asks: the platform bounds the calls of one event. */
const ATTENDANCE_ASKED_MAX_TUNNELS = 5_000;
/** That an agent left is remembered for this long, so that late news of its arrival changes nothing. */
export const ATTENDANCE_LEFT_KEEP_MS = 3600_000;

export interface RosterEntry extends PresentAgent {
  tunnelId: string;
}

const SELECT = `select tunnel_id as tunnelId, agent_id as agentId, remote_ip as remoteIp,
  connected_at_ms as connectedAtMs from roster where agent_id is not null`;

export class Roster {
  readonly #sql: SqlStorage;
  /** In memory on purpose: another instance believes nothing that it did not hear itself. */
  readonly #heardAtMs = new Map<string, number>();

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

  /** Late news changes nothing. */
  take({ tunnelId, sequence, agent }: Attendance, nowMs: number): void {
    this.#heardAtMs.set(tunnelId, nowMs);
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

  /** The tunnel has never heard of an agent, or is no more. */
  forget(tunnelId: string): void {
    this.#heardAtMs.delete(tunnelId);
    this.#sql.exec("delete from roster where tunnel_id = ?", tunnelId);
  }

  /** Newest first. */
  list(): RosterEntry[] {
    return this.#read(`${SELECT} order by connected_at_ms desc, agent_id`);
  }

  /** Tunnels that an agent serves, or lately did. */
  known(): string[] {
    const rows = this.#sql.exec<{ id: string }>("select tunnel_id as id from roster");
    return [...rows].map(({ id }) => id);
  }

  find(agentId: string): RosterEntry | undefined {
    return this.#read(`${SELECT} and agent_id = ?`, agentId)[0];
  }

  /** Of these, the tunnels that must be asked before anybody is told that their agent is there. */
  doubted(entries: RosterEntry[], nowMs: number): string[] {
    const freshSinceMs = nowMs - ATTENDANCE_FRESH_MS;
    return entries
      .map(({ tunnelId }) => tunnelId)
      .filter((id) => (this.#heardAtMs.get(id) ?? -Infinity) < freshSinceMs)
      .slice(0, ATTENDANCE_ASKED_MAX_TUNNELS);
  }

  /** Of agents that left long ago nothing more is to come. */
  dropLeft(nowMs: number): void {
    const before = nowMs - ATTENDANCE_LEFT_KEEP_MS;
    this.#sql.exec("delete from roster where agent_id is null and told_at_ms < ?", before);
    for (const [id, heardAtMs] of this.#heardAtMs) {
      if (heardAtMs < before) this.#heardAtMs.delete(id);
    }
  }

  #read(query: string, ...values: string[]): RosterEntry[] {
    return [...this.#sql.exec(query, ...values)] as unknown as RosterEntry[];
  }
}
