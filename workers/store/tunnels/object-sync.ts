/** Brings rows and Durable Objects into agreement: rows are corrected by objects' reports, objects receive routes. */
import { and, eq, isNull } from "drizzle-orm";
import type { TunnelReport } from "../../../durable-objects/rpc.ts";
import { callObject } from "../../call-object.ts";
import type { AgentAdmission } from "../../../durable-objects/tunnel/admission.ts";
import type { Env } from "../../env.ts";
import { directoryObject, organizationObject, tunnelObject } from "../../objects.ts";
import type { Database } from "../database.ts";
import type { TokenTunnels } from "../object-messages.ts";
import type { RouteChange } from "../outbox-messages.ts";
import { tunnels } from "../tables/tunnels.ts";
import { recordSpending } from "../tokens/spending.ts";
import { listStaleTunnelIds, markDisconnected, saveReport } from "./reports.ts";

/**
 * For a tunnel's object that no agent has connected to yet.
 * @returns the id of the tunnel's organization; null when there is no such tunnel.
 */
export async function findTunnelOwner(
  { query }: Database,
  tunnelId: string,
): Promise<string | null> {
  const [tunnel] = await query
    .select({ orgId: tunnels.orgId })
    .from(tunnels)
    .where(and(eq(tunnels.id, tunnelId), isNull(tunnels.deletedAt)));
  return tunnel?.orgId ?? null;
}

/** Updates the tunnels' rows with reports of their objects. A row whose object does not answer stays as it is. */
export async function refreshTunnelStatuses(
  env: Env,
  db: Database,
  tunnelIds: string[],
): Promise<void> {
  await Promise.allSettled(tunnelIds.map((id) => refreshTunnelStatus(env, db, id)));
}

/** Updates the tunnel's row with a report of its object. */
async function refreshTunnelStatus(env: Env, db: Database, tunnelId: string): Promise<void> {
  const report = await tunnelObject(env, tunnelId).sendReport();
  if (!report) await markDisconnected(db, tunnelId);
}

/** For an agent that the tunnel's object did not accept. Other agents may serve the tunnel, as the object knows. */
export async function withdrawAdmission(
  env: Env,
  db: Database,
  { tunnelId, shard }: AgentAdmission,
): Promise<void> {
  // The agent still has its connection to the first object.
  if (shard !== undefined) return;
  await refreshTunnelStatus(env, db, tunnelId);
}

/**
 * Counts the agents that serve an organization's tunnels now. Rows of other tunnels that say "connected" are corrected,
 * except where the tunnel's object does not answer.
 * @throws ApiError `unavailable` when the organization's object does not answer.
 */
export async function refreshAndCountAgents(
  env: Env,
  db: Database,
  orgId: string,
): Promise<number> {
  const connections = await callObject(organizationObject(env, orgId).listConnections());
  const servedIds = connections.map(({ tunnelId }) => tunnelId);
  const staleIds = await listStaleTunnelIds(db, orgId, servedIds);
  await refreshTunnelStatuses(env, db, staleIds);
  return connections.length;
}

/**
 * Publishes the tunnel that a host leads to. The new tunnel's object accepts the host before requests are sent there;
 * the previous tunnel's object refuses it afterwards.
 */
export async function publishRoute(env: Env, change: RouteChange): Promise<void> {
  const { host, tunnelId, version, shards, from } = change;
  // A subdomain of the service leads to the same tunnel until that tunnel ends.
  const isCustom = host.includes(".");
  if (isCustom && tunnelId !== null) {
    await tunnelObject(env, tunnelId).setCustomHost(host, { version, isHere: true });
  }
  await directoryObject(env, host).publishRoute(host, {
    tunnelId,
    version,
    ...(shards !== undefined && { shards }),
  });
  if (isCustom && from !== undefined) {
    await tunnelObject(env, from).setCustomHost(host, { version, isHere: false });
  }
}

/** Saves a tunnel's report, and disconnects agents whose tokens it takes over their budget. */
export async function applyReport(env: Env, db: Database, report: TunnelReport): Promise<void> {
  await saveReport(db, report);
  if (report.spending.length === 0) return;
  for (const served of await recordSpending(db, report.tunnelId, report.spending)) {
    await disconnectOverBudget(env, served);
  }
}

/** Disconnects the agents of a token that has spent its budget. */
export async function disconnectOverBudget(
  env: Env,
  { tokenNonce, tunnelIds }: TokenTunnels,
): Promise<void> {
  await Promise.all(
    tunnelIds.map(async (id) => tunnelObject(env, id).disconnectOverBudget(tokenNonce)),
  );
}
