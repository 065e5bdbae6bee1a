/** Writes the traffic that tunnels report, and aggregates or deletes it when it is old or the tunnel has ended. */
import { and, eq, isNull, lt, sql, type SQL } from "drizzle-orm";
import type { TunnelReport } from "../../../durable-objects/rpc.ts";
import type { Grain } from "../../../durable-objects/tunnel/metrics/traffic.ts";
import { COUNTERS_FOLD_BATCH_ROWS, TRAFFIC_DELETE_BATCH_ROWS } from "../../limits.ts";
import { isAmong } from "../chunks.ts";
import type { Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { endedCounters, traffic, tunnelCounters } from "../tables/metrics.ts";
import { organizations } from "../tables/organizations.ts";
import { tunnels } from "../tables/tunnels.ts";

/** The row of the reporting tunnel; none when its organization, and with it all traffic, has been deleted. */
function fromReportingTunnel(tunnelId: string): SQL {
  return sql`${tunnels} join ${organizations} on ${organizations.id} = ${tunnels.orgId}
    and ${organizations.deletedAt} is null where ${tunnels.id} = ${tunnelId}`;
}

/** Totals since the tunnel was created. An older report changes nothing. */
export function buildCountersUpsert(report: TunnelReport): SQL {
  const { tunnelId, sequence, bytesIn, bytesOut } = report;
  const counters = { ...report.counters, "bytes:in": bytesIn, "bytes:out": bytesOut };
  return sql`insert into ${tunnelCounters} (tunnel_id, org_id, sequence, counters, ended_at)
    select ${tunnels.id}, ${tunnels.orgId}, ${sequence}::bigint, ${JSON.stringify(counters)}::jsonb,
      case when ${tunnels.deletedAt} is not null or ${tunnels.status} = 'expired' then now() end
    from ${fromReportingTunnel(tunnelId)}
    on conflict (tunnel_id) do update set counters = excluded.counters, sequence = excluded.sequence
    where ${tunnelCounters.sequence} < excluded.sequence and ${tunnelCounters.foldedAt} is null`;
}

/** Totals of each minute and hour, which only increase: a repeated or late report changes nothing. */
export function buildTrafficUpsert(report: TunnelReport): SQL {
  const newest = (column: string) =>
    sql.raw(`${column} = greatest(traffic.${column}, excluded.${column})`);
  return sql`insert into ${traffic} (org_id, grain, starts_at, tunnel_id, requests, bytes_in, bytes_out)
    select ${tunnels.orgId}, bucket.grain, to_timestamp(bucket."startsAtMs" / 1000), ${tunnels.id},
      bucket.requests, bucket."bytesIn", bucket."bytesOut"
    from jsonb_to_recordset(${JSON.stringify(report.traffic)}::jsonb) as bucket(grain text,
      "startsAtMs" bigint, requests bigint, "bytesIn" bigint, "bytesOut" bigint),
      ${fromReportingTunnel(report.tunnelId)}
    on conflict (org_id, grain, starts_at, tunnel_id) do update
    set ${newest("requests")}, ${newest("bytes_in")}, ${newest("bytes_out")}`;
}

/** For tunnels that are deleted or have expired. Their last reports may still arrive. */
export async function endCounters(tx: Transaction, tunnelIds: string[]): Promise<void> {
  await tx
    .update(tunnelCounters)
    .set({ endedAt: sql`now()` })
    .where(and(isAmong(tunnelCounters.tunnelId, tunnelIds), isNull(tunnelCounters.endedAt)));
}

/**
 * Adds the totals of a batch of tunnels that ended long ago to one row of their organization, so that reading an
 * organization's totals does not slow down with the number of tunnels that it has ever had.
 *
 * @returns how many; after a full batch there may be more.
 */
export async function foldCounters({ query }: Database, endedBefore: SQL): Promise<number> {
  const { rows } = await query.execute<{ tunnels: number }>(sql`with ended as (
      select tunnel_id, org_id, counters from ${tunnelCounters}
      where ${tunnelCounters.endedAt} < ${endedBefore}
        and ${tunnelCounters.foldedAt} is null
      limit ${COUNTERS_FOLD_BATCH_ROWS}::int for update skip locked),
    folded as (
      update ${tunnelCounters} set folded_at = now(), counters = '{}' from ended
      where ${tunnelCounters.tunnelId} = ended.tunnel_id),
    sums as (
      select org_id, name, sum(total::bigint) as total
      from ended, jsonb_each_text(ended.counters) as counted(name, total) group by org_id, name),
    added as (
      insert into ${endedCounters} (org_id, counters)
      select org_id, jsonb_object_agg(name, total) from sums group by org_id order by org_id
      on conflict (org_id) do update set counters = (
        select jsonb_object_agg(name, total) from (
          select name, sum(total::bigint) as total from (
            select * from jsonb_each_text(${endedCounters.counters})
            union all select * from jsonb_each_text(excluded.counters)) as counted(name, total)
          group by name) as summed))
    select count(*)::int as tunnels from ended`);
  return rows[0]?.tunnels ?? 0;
}

/** Deletes a batch of rows. @returns how many; after a full batch there may be more. */
export async function deleteOldTraffic(
  { query }: Database,
  grain: Grain,
  before: SQL,
): Promise<number> {
  const old = query
    .select({ row: sql`${traffic}.ctid` })
    .from(traffic)
    .where(and(eq(traffic.grain, grain), lt(traffic.startsAt, before)))
    .limit(TRAFFIC_DELETE_BATCH_ROWS);
  const { rowCount } = await query.delete(traffic).where(sql`${traffic}.ctid = any(array(${old}))`);
  return rowCount;
}

/** When the organization is deleted. */
export async function deleteTraffic(tx: Transaction, orgId: string): Promise<void> {
  for (const table of [traffic, tunnelCounters, endedCounters]) {
    await tx.delete(table).where(eq(table.orgId, orgId));
  }
}
