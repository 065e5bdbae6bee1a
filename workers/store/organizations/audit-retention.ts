/**
 * How long audit events are stored. An attacker who acts for an organization can cause events, so the number alone must not
 * decide: an event about security is never removed within its first 30 days, however many follow it, and afterwards only
 * more events of its own kind can push it out, and `bounds.ts` limits these to a number a day. The database's trigger enforces
 * this for every program that uses it.
 */
import { inArray, lt, sql } from "drizzle-orm";
import { AUDIT_ACTIONS, type AuditAction } from "../../../protocol/audit/audit-actions.ts";
import { DAY_MS } from "../../../shared/time.ts";
import { AUDIT_RETENTION_MS } from "../../limits.ts";
import { ago } from "../clock.ts";
import type { Database } from "../database.ts";
import { auditEvents } from "../tables/audit.ts";

/** Events of one kind of one organization: older ones are removed before their retention has passed. */
export const AUDIT_EVENTS_OF_A_KIND_MAX = 10_000;
/** The same period is in the trigger `audit_events_append_only`. */
const PROTECTED_MS = 30 * DAY_MS;
/** Rows that one statement deletes. */
export const AUDIT_DELETE_BATCH_ROWS = 10_000;
/** Organizations whose events one run of the scheduled job counts. */
const COUNTED_ORGANIZATIONS = 50;

/** The daily use of tunnels, which agents cause. The same list is in the trigger. */
const ROUTINE_ACTIONS: AuditAction[] = [
  "tunnel_created",
  "tunnel_deleted",
  "tunnel_expired",
  "tunnel_started",
  "tunnel_stopped",
  "tunnel_maintenance_started",
  "tunnel_maintenance_ended",
  "tunnel_request_replayed",
  "connection_ended",
];

/** Deletes a batch of events whose retention has passed. @returns how many; after a full batch there may be more. */
export async function deleteOldAuditEvents({ query }: Database): Promise<number> {
  const old = query
    .select({ id: auditEvents.id })
    .from(auditEvents)
    .where(lt(auditEvents.createdAt, ago(AUDIT_RETENTION_MS)))
    .orderBy(auditEvents.createdAt)
    .limit(AUDIT_DELETE_BATCH_ROWS);
  const { rowCount } = await query.delete(auditEvents).where(inArray(auditEvents.id, old));
  return rowCount;
}

/**
 * Deletes a batch of events beyond the maximum of their kind, of some organizations. The organizations are taken in the
 * order of their ids, starting at a random one, so that each is counted now and then although no position is stored. The
 * newest event beyond the maximum is found once for each kind (`materialized`), and not for each event.
 */
export async function deleteExcessAuditEvents({ query }: Database): Promise<number> {
  const start = crypto.randomUUID();
  const { rowCount } = await query.execute(sql`with counted as (
      (select id as org_id from organizations where id >= ${start}::uuid order by id limit ${COUNTED_ORGANIZATIONS}::int)
      union all
      (select id from organizations where id < ${start}::uuid order by id limit ${COUNTED_ORGANIZATIONS}::int)
      limit ${COUNTED_ORGANIZATIONS}::int),
    newest_excess as materialized (
      select counted.org_id, kinds.action, excess.created_at, excess.id
      from counted, unnest(${sql.param(Object.keys(AUDIT_ACTIONS))}::text[]) as kinds(action), lateral (
        select created_at, id from audit_events
        where audit_events.org_id = counted.org_id and audit_events.action = kinds.action
        order by created_at desc, id desc offset ${AUDIT_EVENTS_OF_A_KIND_MAX}::int limit 1) as excess),
    excess as (
      select audit_events.id from audit_events
      join newest_excess using (org_id, action)
      where (audit_events.created_at, audit_events.id) <= (newest_excess.created_at, newest_excess.id)
        and (action = any(${sql.param(ROUTINE_ACTIONS)}::text[])
          or audit_events.created_at < ${ago(PROTECTED_MS)})
      limit ${AUDIT_DELETE_BATCH_ROWS}::int)
    delete from audit_events using excess where audit_events.id = excess.id`);
  return rowCount ?? 0;
}
