/** Public host names and their tunnels. The row decides; objects store a copy with the row's version. */
import { fromNow } from "../clock.ts";
import { and, eq, inArray, isNotNull, isNull, not, or, sql, type SQL } from "drizzle-orm";
import type { Route } from "../../../durable-objects/rpc.ts";
import type { UnitOfWork, Database } from "../database.ts";
import { hostnames, tunnels } from "../tables/tunnels.ts";

/** @returns null when the host has never been claimed. */
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
  /** The organization of the tunnel: a name that another organization has reserved is not free. */
  orgId: string;
  /** The tunnel that the name leads to now, and is taken from. */
  from?: string | null;
  /** false for protocol `tcp`: the tunnel has the name, but no HTTP request is sent to it. */
  isRoutable?: boolean;
}

/** Claims a free name. A single statement, so that one of two concurrent claims succeeds. @returns whether it did. */
export async function claimHostname(
  { tx, enqueue }: UnitOfWork,
  { host, tunnelId, orgId, from = null, isRoutable = true }: HostnameClaim,
): Promise<boolean> {
  const isTakenOver = from === null ? undefined : eq(hostnames.tunnelId, from);
  const [claimed] = await tx
    .insert(hostnames)
    .values({ host, tunnelId })
    .onConflictDoUpdate({
      target: hostnames.host,
      set: { tunnelId, version: sql`${hostnames.version} + 1` },
      setWhere: and(or(isNull(hostnames.tunnelId), isTakenOver), not(isReservedByOther(orgId))),
    })
    .returning({ version: hostnames.version });
  if (!claimed) return false;
  const { version } = claimed;
  const leadsTo = isRoutable ? tunnelId : null;
  enqueue({
    kind: "hostname",
    payload: { host, tunnelId: leadsTo, version, ...(from && { from }) },
  });
  return true;
}

/** Whether another organization has reserved the name, or its reservation has ended too recently. */
function isReservedByOther(orgId: string): SQL {
  const { heldByOrgId, heldUntil } = hostnames;
  return sql`(${heldByOrgId} is not null and ${heldByOrgId} <> ${orgId} and coalesce(${heldUntil}, 'infinity') > now())`;
}

/**
 * Reserves a name for an organization, which may already have a tunnel there. The row is inserted before it is read, so
 * that it can be locked: concurrent claims and reservations of the name wait.
 *
 * @returns false when another organization has the name.
 */
export async function reserveHostname(
  { tx }: UnitOfWork,
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

/** Ends reservations. Other organizations can claim the names after `afterMs`; this organization can at once. */
export async function endReservations(
  { tx }: UnitOfWork,
  hosts: string[],
  { orgId, afterMs }: { orgId: string; afterMs: number },
): Promise<void> {
  await tx
    .update(hostnames)
    .set({ heldUntil: fromNow(afterMs) })
    .where(and(inArray(hostnames.host, hosts), eq(hostnames.heldByOrgId, orgId)));
}

/** Releases one name of a tunnel that keeps its other names. */
export function releaseHostname(change: UnitOfWork, host: string, from: string): Promise<void> {
  return release(change, eq(hostnames.host, host), { from });
}

/** Releases all names of these tunnels. */
export async function releaseHostnames(change: UnitOfWork, tunnelIds: string[]): Promise<void> {
  if (tunnelIds.length > 0) await release(change, inArray(hostnames.tunnelId, tunnelIds));
}

async function release(
  { tx, enqueue }: UnitOfWork,
  which: SQL,
  previous: { from?: string } = {},
): Promise<void> {
  const released = await tx
    .update(hostnames)
    .set({ tunnelId: null, version: sql`${hostnames.version} + 1` })
    .where(and(which, isNotNull(hostnames.tunnelId)))
    .returning({ host: hostnames.host, version: hostnames.version });
  for (const { host, version } of released) {
    enqueue({ kind: "hostname", payload: { host, tunnelId: null, version, ...previous } });
  }
}
