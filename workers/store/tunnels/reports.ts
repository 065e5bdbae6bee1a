/** The status and the totals that tunnels' objects report to their rows. */
import { and, eq, isNotNull, lt, sql } from "drizzle-orm";
import type { TunnelReport } from "../../../durable-objects/rpc.ts";
import { TUNNEL_REFRESH_MAX_ROWS } from "../../limits.ts";
import type { Database } from "../database.ts";
import { buildCountersUpsert, buildTrafficUpsert } from "../metrics/traffic.ts";
import { tunnels } from "../tables/tunnels.ts";
import { isStatusStale, isUndeletedTunnelIn } from "./undeleted-tunnels.ts";

/**
 * A report that is older than the row's changes nothing. All of it is written in one transaction, so that a tunnel's
 * totals agree wherever they are read.
 */
export async function saveReport({ query }: Database, report: TunnelReport): Promise<void> {
  const { tunnelId, sequence, agentConnected, lastSeenAtMs, bytesIn, bytesOut, requests } = report;
  const { maintenance } = report;
  const update = query
    .update(tunnels)
    .set({
      agentConnected: agentConnected
        ? sql`${tunnels.deletedAt} is null and ${tunnels.stoppedAt} is null and ${tunnels.status} <> 'expired'`
        : false,
      // After an agent has closed its connection properly, the object has no record of it: it was seen until now.
      lastSeenAt:
        lastSeenAtMs === null
          ? sql`case when ${tunnels.agentConnected} then now() else ${tunnels.lastSeenAt} end`
          : new Date(lastSeenAtMs),
      bytesIn,
      bytesOut,
      totalRequests: requests,
      maintenance,
      reportSequence: sequence,
      status: getStatusAfter(agentConnected),
    })
    .where(and(eq(tunnels.id, tunnelId), lt(tunnels.reportSequence, sequence)));
  if (report.traffic.length === 0) await update;
  else {
    const counted = [
      query.execute(buildCountersUpsert(report)),
      query.execute(buildTrafficUpsert(report)),
    ];
    await query.batch([update, ...counted]);
  }
}

/** For a tunnel to whose object no agent has ever connected. */
export async function markDisconnected({ query }: Database, tunnelId: string): Promise<void> {
  await query
    .update(tunnels)
    .set({ agentConnected: false, status: getStatusAfter(false) })
    .where(eq(tunnels.id, tunnelId));
}

/** Expired and stopped tunnels keep their status. One that no agent has served since its creation or start is not offline. */
function getStatusAfter(agentConnected: boolean) {
  const { status, stoppedAt } = tunnels;
  return agentConnected
    ? sql`case when ${status} = 'expired' or ${stoppedAt} is not null then ${status} else 'active' end`
    : sql`case when ${status} = 'active' and ${tunnels.agentConnected} then 'offline' else ${status} end`;
}

/** The tunnels that an agent serves according to their rows, which may be some seconds old. */
export async function listConnectedTunnelIds({ query }: Database): Promise<string[]> {
  const rows = await query
    .select({ id: tunnels.id })
    .from(tunnels)
    .where(and(eq(tunnels.agentConnected, true), isNotNull(tunnels.connectedTokenId)));
  return rows.map(({ id }) => id);
}

/** Tunnels whose rows say "connected" and were not updated recently, except those that are served. */
export async function listStaleTunnelIds(
  { query }: Database,
  orgId: string,
  servedIds: string[],
): Promise<string[]> {
  const rows = await query
    .select({ id: tunnels.id })
    .from(tunnels)
    .where(
      and(
        isUndeletedTunnelIn(orgId),
        tunnels.agentConnected,
        isStatusStale(),
        sql`${tunnels.id} <> all(${`{${servedIds.join()}}`}::uuid[])`,
      ),
    )
    .limit(TUNNEL_REFRESH_MAX_ROWS);
  return rows.map(({ id }) => id);
}
