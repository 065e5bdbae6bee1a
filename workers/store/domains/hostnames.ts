/** Public host names and their tunnels. The row decides; objects store a copy with the row's version. */
import { isAmong } from "../chunks.ts";
import { fromNow } from "../clock.ts";
import { DAY_MS } from "../../../shared/time.ts";
import { and, eq, isNotNull, isNull, not, or, sql, type SQL } from "drizzle-orm";
import type { Route } from "../../../durable-objects/rpc.ts";
import { prepared, type Database, type UnitOfWork } from "../database.ts";
import { hostnames, tunnels } from "../tables/tunnels.ts";

/** How long other organizations can't claim a released subdomain: its visitors' browsers may still send cookies there. */
const SUBDOMAIN_COOL_DOWN_MS = DAY_MS;
/** Names of one organization in the cool-down. Further ones are free at once, so that it can't block names in bulk. */
const COOLING_NAMES_MAX = 1_000;

const routes = prepared((query) =>
  query
    .select({
      host: hostnames.host,
      tunnelId: hostnames.tunnelId,
      version: hostnames.version,
      protocol: tunnels.protocol,
      shards: tunnels.shards,
    })
    .from(hostnames)
    .leftJoin(tunnels, eq(tunnels.id, hostnames.tunnelId))
    .where(sql`${hostnames.host} = any(${sql.placeholder("hosts")}::text[])`)
    .prepare("routes"),
);

/** @returns the routes of those hosts that have ever been claimed. */
export async function findRoutes(db: Database, hosts: string[]): Promise<Map<string, Route>> {
  const rows = await routes(db, { hosts });
  return new Map(
    rows.map(({ host, tunnelId, version, protocol, shards }) => [
      host,
      { tunnelId: protocol === "tcp" ? null : tunnelId, version, ...toShards(shards) },
    ]),
  );
}

interface HostnameClaim {
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
    .returning({
      version: hostnames.version,
      shards: sql<number>`(select ${tunnels.shards} from ${tunnels} where ${tunnels.id} = ${tunnelId})`,
    });
  if (!claimed) return false;
  const { version, shards } = claimed;
  const leadsTo = isRoutable ? tunnelId : null;
  enqueue({
    kind: "hostname",
    payload: { host, tunnelId: leadsTo, version, ...toShards(shards), ...(from && { from }) },
  });
  return true;
}

/** After a change of the number of a tunnel's objects, which is part of its routes. */
export async function republishHostnames(
  { tx, enqueue }: UnitOfWork,
  { id: tunnelId, shards }: { id: string; shards: number },
): Promise<void> {
  const routed = await tx
    .update(hostnames)
    .set({ version: sql`${hostnames.version} + 1` })
    .where(eq(hostnames.tunnelId, tunnelId))
    .returning({ host: hostnames.host, version: hostnames.version });
  for (const { host, version } of routed) {
    enqueue({ kind: "hostname", payload: { host, tunnelId, version, ...toShards(shards) } });
  }
}

/** A route without the field leads to one object. */
function toShards(shards: number | null): Pick<Route, "shards"> {
  return shards === null || shards === 1 ? {} : { shards };
}

/** Why a name is taken. */
export interface TakenName {
  /** When other organizations can claim it, if it is no longer in use. null: it is in use, or reserved. */
  freeAt: Date | null;
}

/** For a name whose claim or reservation has failed. */
export async function findTakenName(
  { tx }: Pick<UnitOfWork, "tx">,
  host: string,
  orgId: string,
): Promise<TakenName> {
  const [row] = await tx
    .select({ freeAt: hostnames.heldUntil })
    .from(hostnames)
    .where(and(eq(hostnames.host, host), isNull(hostnames.tunnelId), isReservedByOther(orgId)));
  return { freeAt: row?.freeAt ?? null };
}

/** Whether another organization has reserved the name, or has had it too recently. */
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

/** Ends reservations. Other organizations can claim the names after the cool-down; this organization can at once. */
export async function endReservations(
  { tx }: UnitOfWork,
  hosts: string[],
  orgId: string,
): Promise<void> {
  await tx
    .update(hostnames)
    .set({ heldUntil: fromNow(SUBDOMAIN_COOL_DOWN_MS) })
    .where(and(isAmong(hostnames.host, hosts), eq(hostnames.heldByOrgId, orgId)));
}

/** Releases one name of a tunnel that keeps its other names. */
export function releaseHostname(change: UnitOfWork, host: string, from: string): Promise<void> {
  return release(change, eq(hostnames.host, host), { from });
}

/** Releases all names of these tunnels. */
export async function releaseHostnames(change: UnitOfWork, tunnelIds: string[]): Promise<void> {
  if (tunnelIds.length > 0) await release(change, isAmong(hostnames.tunnelId, tunnelIds));
}

/**
 * The names of tunnels of one organization. A subdomain stays with it for the cool-down, or for as long as it is reserved. A
 * custom domain does not: another organization must prove that the domain is its own.
 */
async function release(
  { tx, enqueue }: UnitOfWork,
  which: SQL,
  previous: { from?: string } = {},
): Promise<void> {
  const { heldByOrgId, heldUntil } = hostnames;
  const orgId = sql`(select ${tunnels.orgId} from ${tunnels} where ${tunnels.id} = ${hostnames.tunnelId})`;
  const isCustomDomain = sql`${hostnames.host} like '%.%'`;
  const keepsHolder = sql`(${isCustomDomain} or (${heldByOrgId} is not null and ${heldUntil} is null))`;
  const isReleased = and(which, isNotNull(hostnames.tunnelId));
  // A statement does not see the names that it releases itself, so they are counted by their numbers.
  const numbered = tx
    .select({
      host: hostnames.host,
      number: sql`row_number() over (partition by ${keepsHolder} order by ${hostnames.host})`.as(
        "number",
      ),
    })
    .from(hostnames)
    .where(isReleased)
    .as("numbered");
  const released = await tx
    .update(hostnames)
    .set({
      tunnelId: null,
      version: sql`${hostnames.version} + 1`,
      heldByOrgId: sql`case when ${isCustomDomain} then ${heldByOrgId} else ${orgId} end`,
      heldUntil: sql`case when ${keepsHolder} then ${heldUntil}
        when (select count(*) from hostnames cooling where cooling.held_by_org_id = ${orgId}
          and cooling.held_until > now()) + ${numbered.number} <= ${COOLING_NAMES_MAX}
        then ${fromNow(SUBDOMAIN_COOL_DOWN_MS)} else now() end`,
    })
    .from(numbered)
    .where(and(isReleased, eq(hostnames.host, numbered.host)))
    .returning({ host: hostnames.host, version: hostnames.version });
  for (const { host, version } of released) {
    enqueue({ kind: "hostname", payload: { host, tunnelId: null, version, ...previous } });
  }
}
