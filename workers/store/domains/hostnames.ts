/** Public names: who holds each. The row decides; what objects keep is a copy with the row's version. */
import { fromNow } from "../clock.ts";
import { and, eq, inArray, isNotNull, isNull, not, or, sql, type SQL } from "drizzle-orm";
import type { Route } from "../../../durable-objects/rpc.ts";
import type { Change, Database } from "../database.ts";
import { hostnames, tunnels } from "../tables/tunnels.ts";

/** @returns null when no row was ever made for this host. */
export async function findRoute({ query }: Database, host: string): Promise<Route | null> {
  const [row] = await query
    .select({
      tunnelId: hostnames.tunnelId,
      version: hostnames.version,
      protocol: tunnels.protocol,
    })
    .from(hostnames)
    .leftJoin(tunnels, eq(tunnels.id, hostnames.tunnelId))
    .where(eq(hostnames.host, host));
  if (!row) return null;
  const { tunnelId, version, protocol } = row;
  return { tunnelId: protocol === "tcp" ? null : tunnelId, version };
}

export interface HostnameClaim {
  host: string;
  tunnelId: string;
  /** Whose the tunnel is: what another organization holds is not free. */
  orgId: string;
  /** The tunnel that has the name now and gives it up. */
  from?: string | null;
  /** A tunnel of protocol `tcp` holds its name, and no HTTP request leads there. */
  hasVisitors?: boolean;
}

/** Takes a name that is free. One statement, so that of two who want it one gets it. */
export async function claimHostname(
  { tx, enqueue }: Change,
  { host, tunnelId, orgId, from = null, hasVisitors = true }: HostnameClaim,
): Promise<boolean> {
  const isOurs = from === null ? undefined : eq(hostnames.tunnelId, from);
  const [claimed] = await tx
    .insert(hostnames)
    .values({ host, tunnelId })
    .onConflictDoUpdate({
      target: hostnames.host,
      set: { tunnelId, version: sql`${hostnames.version} + 1` },
      setWhere: and(or(isNull(hostnames.tunnelId), isOurs), not(isReservedByOther(orgId))),
    })
    .returning({ version: hostnames.version });
  if (!claimed) return false;
  const { version } = claimed;
  const leadsTo = hasVisitors ? tunnelId : null;
  enqueue({
    kind: "hostname",
    payload: { host, tunnelId: leadsTo, version, ...(from && { from }) },
  });
  return true;
}

/** Whether somebody else has reserved it, or has given it up only lately. */
function isReservedByOther(orgId: string): SQL {
  const { heldByOrgId, heldUntil } = hostnames;
  return sql`(${heldByOrgId} is not null and ${heldByOrgId} <> ${orgId} and coalesce(${heldUntil}, 'infinity') > now())`;
}

/**
 * Keeps a name for an organization, which may have a tunnel there already. The row is made before it is
 * asked, so that there is one to lock: who wants the same name waits, whichever of both ways they go.
 */
export async function reserveHostname(
  { tx }: Change,
  host: string,
  orgId: string,
): Promise<boolean> {
  await tx.insert(hostnames).values({ host }).onConflictDoNothing();
  const [row] = await tx
    .select({ tunnelId: hostnames.tunnelId, isHeldFrom: isReservedByOther(orgId) })
    .from(hostnames)
    .where(eq(hostnames.host, host))
    .for("update");
  if (row!.isHeldFrom === true) return false;
  const { tunnelId } = row!;
  if (tunnelId !== null) {
    const [own] = await tx
      .select({ id: tunnels.id })
      .from(tunnels)
      .where(and(eq(tunnels.id, tunnelId), eq(tunnels.orgId, orgId)));
    if (!own) return false;
  }
  await tx
    .update(hostnames)
    .set({ heldByOrgId: orgId, heldUntil: null })
    .where(eq(hostnames.host, host));
  return true;
}

/** Others get these names when the time is over; the organization itself has no need to wait. */
export async function endReservations(
  { tx }: Change,
  hosts: string[],
  { orgId, afterMs }: { orgId: string; afterMs: number },
): Promise<void> {
  await tx
    .update(hostnames)
    .set({ heldUntil: fromNow(afterMs) })
    .where(and(inArray(hostnames.host, hosts), eq(hostnames.heldByOrgId, orgId)));
}

/** Frees one name of a tunnel that goes on under others. */
export function releaseHostname(change: Change, host: string, from: string): Promise<void> {
  return release(change, eq(hostnames.host, host), { from });
}

/** Frees every name of these tunnels. */
export async function releaseHostnames(change: Change, tunnelIds: string[]): Promise<void> {
  if (tunnelIds.length > 0) await release(change, inArray(hostnames.tunnelId, tunnelIds));
}

async function release(
  { tx, enqueue }: Change,
  which: SQL,
  left: { from?: string } = {},
): Promise<void> {
  const released = await tx
    .update(hostnames)
    .set({ tunnelId: null, version: sql`${hostnames.version} + 1` })
    .where(and(which, isNotNull(hostnames.tunnelId)))
    .returning({ host: hostnames.host, version: hostnames.version });
  for (const { host, version } of released) {
    enqueue({ kind: "hostname", payload: { host, tunnelId: null, version, ...left } });
  }
}
