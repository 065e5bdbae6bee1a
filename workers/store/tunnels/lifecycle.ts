/** The end of tunnels, by deletion or expiry, and the stop that their owner can undo. */
import { and, eq, lt, lte, notExists, sql, type SQL } from "drizzle-orm";
import { EXPIRY_BATCH_ROWS, RANDOM_NAME_KEEP_MS } from "../../limits.ts";
import { serviceActor, type Actor, type OrganizationActor } from "../audit.ts";
import { ago } from "../clock.ts";
import type { UnitOfWork, Database } from "../database.ts";
import { unbindTunnels } from "../domains/domains.ts";
import { releaseHostnames } from "../domains/hostnames.ts";
import type { CallerActor } from "../locks.ts";
import { endCounters } from "../metrics/traffic.ts";
import { domains } from "../tables/domains.ts";
import { tunnels, type TunnelRow } from "../tables/tunnels.ts";
import { isDue, isUndeletedTunnel, isUndeletedTunnelIn, isUnended } from "./undeleted-tunnels.ts";
import { NEXT_SETTINGS_VERSION } from "./settings-version.ts";
import { releaseTunnelPorts } from "./tcp-ports.ts";

/**
 * The row is kept for its counters and the audit log; its name is free, and its agent is disconnected.
 *
 * @returns false when there is no such tunnel.
 */
export function deleteTunnel(db: Database, actor: OrganizationActor, id: string): Promise<boolean> {
  return db.transaction(async (change) => {
    const deleted = await deleteTunnels(change, actor, eq(tunnels.id, id));
    return deleted > 0;
  });
}

/** Deletes the organization's tunnels for which the condition holds, or all of them. @returns how many. */
export async function deleteTunnels(
  change: UnitOfWork,
  actor: OrganizationActor,
  condition?: SQL,
): Promise<number> {
  const deleted = await change.tx
    .update(tunnels)
    .set({ deletedAt: sql`now()`, agentConnected: false })
    .where(and(isUndeletedTunnelIn(actor.orgId), condition))
    .returning({ id: tunnels.id, subdomain: tunnels.subdomain });
  await retireTunnels(
    change,
    actor,
    deleted.map(({ id }) => id),
    "deleted",
  );
  for (const { id, subdomain } of deleted) change.audit(actor, "tunnel_deleted", id, { subdomain });
  return deleted.length;
}

export type StopResult = Pick<TunnelRow, "status" | "stoppedAt"> | "not_found" | "expired";

/**
 * Stops a tunnel, or starts it again. Stopping a stopped tunnel changes no row and sends the state to the tunnel's object
 * again. A tunnel whose expiry has been reached expires here.
 */
export async function setStopped(
  db: Database,
  actor: CallerActor,
  id: string,
  isStopped: boolean,
): Promise<StopResult> {
  return db.changeAs(
    actor,
    async (change) => {
      const [tunnel] = await change.tx
        .select({ row: tunnels, isDue })
        .from(tunnels)
        .where(isUndeletedTunnel(actor.orgId, id))
        .for("update");
      if (!tunnel) return "not_found";
      let { row } = tunnel;
      if (row.status !== "expired" && tunnel.isDue) await expireTunnel(change, row);
      if (row.status === "expired" || tunnel.isDue) return "expired";
      if (isStopped ? row.stoppedAt === null : row.status !== "active") {
        row = await updateStopped(change, id, isStopped);
        change.audit(actor, isStopped ? "tunnel_stopped" : "tunnel_started", id);
      }
      const stopping = { version: row.settingsVersion, isStopped };
      change.enqueue({ kind: "tunnel_stopping", payload: { tunnelId: id, stopping } });
      return { status: row.status, stoppedAt: row.stoppedAt };
    },
    { requireDelivery: true },
  );
}

async function updateStopped(
  { tx }: UnitOfWork,
  id: string,
  isStopped: boolean,
): Promise<TunnelRow> {
  const [row] = await tx
    .update(tunnels)
    .set({
      ...(isStopped
        ? { stoppedAt: sql`now()`, status: "offline", agentConnected: false }
        : { stoppedAt: null, status: "active" }),
      settingsVersion: NEXT_SETTINGS_VERSION,
    })
    .where(eq(tunnels.id, id))
    .returning();
  return row!;
}

/** Expires a batch of the tunnels whose expiry has been reached. @returns how many; after a full batch there may be more. */
export function expireTunnels(db: Database): Promise<number> {
  return db.transaction(async (change) => {
    const due = await lockBatch(change, lte(tunnels.expiresAt, sql`now()`));
    for (const tunnel of due) await expireTunnel(change, tunnel);
    return due.length;
  });
}

/**
 * Deletes a batch of the tunnels with a random name whose agents have been away for long. They would pile up, because each
 * start of an agent without a name creates another one. @returns how many; after a full batch there may be more.
 */
export function deleteUnusedRandomNames(db: Database): Promise<number> {
  const isUnused = and(
    // As in the condition of the index.
    sql`${tunnels.hasRandomName} and not ${tunnels.agentConnected}`,
    lt(tunnels.lastSeenAt, ago(RANDOM_NAME_KEEP_MS)),
    notExists(db.query.select().from(domains).where(eq(domains.boundTunnelId, tunnels.id))),
  );
  return db.transaction(async (change) => {
    const unused = await lockBatch(change, isUnused);
    for (const { id, orgId } of unused)
      await deleteTunnels(change, serviceActor(orgId), eq(tunnels.id, id));
    return unused.length;
  });
}

function lockBatch({ tx }: UnitOfWork, condition: SQL | undefined): Promise<TunnelRow[]> {
  return tx
    .select()
    .from(tunnels)
    .where(and(condition, isUnended))
    .limit(EXPIRY_BATCH_ROWS)
    .for("update", { skipLocked: true });
}

/**
 * Expires a tunnel whose expiry has been reached, by the database's clock.
 *
 * @returns the milliseconds that remain; null when the tunnel has ended or never expires.
 */
export function expireIfDue(db: Database, id: string): Promise<number | null> {
  return db.transaction(async (change) => {
    const remaining = sql`ceil(extract(epoch from ${tunnels.expiresAt} - now()) * 1000)`;
    const remainingMs: SQL<number | null> = remaining.mapWith(Number);
    const [tunnel] = await change.tx
      .select({ row: tunnels, remainingMs })
      .from(tunnels)
      .where(and(eq(tunnels.id, id), isUnended))
      .for("update");
    if (!tunnel || tunnel.remainingMs === null) return null;
    if (tunnel.remainingMs > 0) return tunnel.remainingMs;
    await expireTunnel(change, tunnel.row);
    return null;
  });
}

/** The caller has locked the tunnel's row. */
export async function expireTunnel(change: UnitOfWork, { id, orgId }: TunnelRow): Promise<void> {
  await change.tx
    .update(tunnels)
    .set({ status: "expired", agentConnected: false })
    .where(eq(tunnels.id, id));
  const actor = serviceActor(orgId);
  await retireTunnels(change, actor, [id], "expired");
  change.audit(actor, "tunnel_expired", id);
}

/** Frees what tunnels hold, and sends their objects the end. */
async function retireTunnels(
  change: UnitOfWork,
  actor: Actor,
  tunnelIds: string[],
  why: "deleted" | "expired",
): Promise<void> {
  await unbindTunnels(change, actor, tunnelIds);
  await endCounters(change.tx, tunnelIds);
  await releaseHostnames(change, tunnelIds);
  await releaseTunnelPorts(change, tunnelIds);
  for (const tunnelId of tunnelIds) {
    change.enqueue({ kind: "tunnel_retired", payload: { tunnelId, why } });
  }
}
