/** Where rows and live state meet: a row whose news is old is set right by asking the tunnel itself. */
import type { TunnelReport } from "../../../durable-objects/rpc.ts";
import type { Env } from "../../env.ts";
import { hostnameObject, organizationObject, tunnelObject } from "../../objects.ts";
import type { Database } from "../database.ts";
import { listStaleTunnelIds } from "../metrics/metrics.ts";
import type { RouteChange } from "../outbox-messages.ts";
import { recordSpending } from "../tokens/spending.ts";
import type { ServedTunnels } from "../tokens/tokens.ts";
import { markDisconnected, saveReport } from "./tunnels.ts";

/** Afterwards the tunnel's row says what is true. */
export async function confirmTunnel(env: Env, db: Database, tunnelId: string): Promise<void> {
  const report = await tunnelObject(env, tunnelId).sendReport();
  if (!report) await markDisconnected(db, tunnelId);
}

/**
 * How many agents serve an organization's tunnels now. Rows that say "connected" of others are set right; one
 * whose tunnel can't be asked stays as it is.
 */
export async function countAgents(env: Env, db: Database, orgId: string): Promise<number> {
  const connections = await organizationObject(env, orgId).listConnections();
  const served = connections.map(({ tunnelId }) => tunnelId);
  const doubtful = await listStaleTunnelIds(db, orgId, served);
  await Promise.allSettled(doubtful.map((id) => confirmTunnel(env, db, id)));
  return connections.length;
}

/**
 * Tells where a host leads from now on. Whoever is asked for it knows better before the host leads there, and
 * whoever is not asked any more after it.
 */
export async function publishRoute(env: Env, change: RouteChange): Promise<void> {
  const { host, tunnelId, version, from } = change;
  // A label of the service's own domain leads to one tunnel until that ends.
  const isCustom = host.includes(".");
  if (isCustom && tunnelId !== null) {
    await tunnelObject(env, tunnelId).setCustomHost(host, { version, isHere: true });
  }
  await hostnameObject(env, host).publish({ tunnelId, version });
  if (isCustom && from !== undefined) {
    await tunnelObject(env, from).setCustomHost(host, { version, isHere: false });
  }
}

/** What a tunnel says of itself, with what follows from it. */
export async function applyReport(env: Env, db: Database, report: TunnelReport): Promise<void> {
  await saveReport(db, report);
  if (report.spending.length === 0) return;
  for (const served of await recordSpending(db, report.tunnelId, report.spending)) {
    await disconnectOverBudget(env, served);
  }
}

/** Disconnects the agents of a token whose budget is spent. */
export async function disconnectOverBudget(env: Env, { tokenNonce, tunnelIds }: ServedTunnels): Promise<void> {
  await Promise.all(
    tunnelIds.map(async (id) => tunnelObject(env, id).disconnectOverBudget(tokenNonce)),
  );
}
