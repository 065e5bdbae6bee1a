/** Tunnels' rows: that they exist, whose they are, and the newest news of them. */
import { and, eq, inArray, isNotNull, isNull, lt, lte, ne, sql, type SQL } from "drizzle-orm";
import type { TunnelReport } from "../../../durable-objects/rpc.ts";
import { EXPIRY_BATCH_ROWS } from "../../limits.ts";
import { getRequestedExpiry, getTunnelExpiry } from "../billing/plans.ts";
import { serviceActor, type Actor, type OrganizationActor } from "../audit.ts";
import type { Change, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { unbindTunnels } from "../domains/domains.ts";
import { claimHostname, releaseHostnames } from "../domains/hostnames.ts";
import { inOrganization, preparedList, SCOPE_ID, type Page } from "../page.ts";
import { lockPlanAndRole, type MemberActor } from "../locks.ts";
import type { PortRefusal } from "../networks/relay-ports.ts";
import { domains } from "../tables/domains.ts";
import { relays } from "../tables/networks.ts";
import { tunnels, type TunnelRow } from "../tables/tunnels.ts";
import { projects } from "../tables/organizations.ts";
import {
  releaseTunnelPorts,
  reserveTunnelPort,
  type WantedPort,
  type TunnelWithRelay,
} from "./tcp-ports.ts";
import { endCounters, writeCounters, writeTraffic } from "../metrics/traffic.ts";
import { liveTunnel, liveTunnels } from "./live-tunnels.ts";

/** Of what stands before a tunnel a list says only that it is there: the rest is secret, or long. */
const LISTED = {
  id: tunnels.id,
  name: tunnels.name,
  subdomain: tunnels.subdomain,
  status: tunnels.status,
  protocol: tunnels.protocol,
  localPort: tunnels.localPort,
  publicPort: tunnels.publicPort,
  allowedCidrs: tunnels.allowedCidrs,
  agentConnected: tunnels.agentConnected,
  maintenance: tunnels.maintenance,
  authEnabled: sql<boolean>`${tunnels.basicAuthHash} is not null`,
  edgeAuthEnabled: sql<boolean>`${tunnels.identityGate} is not null`,
  policyActions: sql<number>`coalesce(jsonb_array_length(${tunnels.policy}->'actions'), 0)`,
  bytesIn: tunnels.bytesIn,
  bytesOut: tunnels.bytesOut,
  totalRequests: tunnels.totalRequests,
  createdAt: tunnels.createdAt,
  expiresAt: tunnels.expiresAt,
  lastSeenAt: tunnels.lastSeenAt,
};

type ListedColumn = Exclude<
  keyof typeof LISTED,
  "authEnabled" | "edgeAuthEnabled" | "policyActions"
>;
export type ListedTunnel = Pick<TunnelRow, ListedColumn> & {
  projectSlug: string;
  /** Of the relay that has its public port. */
  relayHost: string | null;
  authEnabled: boolean;
  edgeAuthEnabled: boolean;
  policyActions: number;
  customDomains: string[];
};

const customDomains = sql<
  string[]
>`array(select ${domains.domain} from ${domains} where ${domains.boundTunnelId} = ${tunnels.id} order by 1)`;

const list = preparedList("list_tunnels", inOrganization(tunnels), (query, isOnPage) =>
  query
    .select({ ...LISTED, projectSlug: projects.slug, relayHost: relays.host, customDomains })
    .from(tunnels)
    .innerJoin(projects, eq(projects.id, tunnels.projectId))
    .leftJoin(relays, eq(relays.id, tunnels.relayId))
    .where(and(isOnPage, liveTunnels(SCOPE_ID))),
);

/** Newest first. */
export function listTunnels(db: Database, orgId: string, page: Page): Promise<ListedTunnel[]> {
  return list(db, orgId, page);
}

export interface NewTunnel {
  name: string;
  /** The name with the project's suffix. */
  label: string;
  projectSlug: string;
  protocol: TunnelRow["protocol"];
  localPort: number;
  expiresAt: Date | null;
  requestedExpiresAt: Date | null;
}

/** When it ends, the plan says. */
export type AskedTunnel = Omit<NewTunnel, "expiresAt" | "askedEnd"> & {
  ttlSeconds: number | undefined;
  /** Of protocol `tcp` only. */
  wantedPort: WantedPort;
};

export function createTunnel(
  db: Database,
  actor: MemberActor,
  { ttlSeconds, wantedPort, ...asked }: AskedTunnel,
): Promise<TunnelWithRelay | PortRefusal | "duplicate_name" | "project_not_found"> {
  return db.transaction(async (change) => {
    const plan = await lockPlanAndRole(change.tx, actor);
    const projectId = await findProjectId(change.tx, actor.orgId, asked.projectSlug);
    if (projectId === null) return "project_not_found";
    const now = new Date();
    const expiresAt = getTunnelExpiry(plan.plan, ttlSeconds, now);
    const tunnel = { ...asked, expiresAt, askedEnd: getRequestedExpiry(ttlSeconds, now) };
    const row = await insertTunnel(change, actor, tunnel, projectId);
    if (!row) return change.rollback("duplicate_name");
    if (row.expiresAt) {
      const payload = { tunnelId: row.id, atMs: row.expiresAt.getTime() };
      change.enqueue({ kind: "tunnel_ends", payload });
    }
    if (row.protocol !== "tcp") return { ...row, relayHost: null };
    const withPort = await reserveTunnelPort(change, row, wantedPort);
    return typeof withPort === "string" ? change.rollback(withPort) : withPort;
  });
}

/** While the change runs, the project stays. */
export async function findProjectId(
  tx: Transaction,
  orgId: string,
  slug: string,
): Promise<string | null> {
  const [project] = await tx
    .select({ id: projects.id })
    .from(projects)
    .where(and(eq(projects.orgId, orgId), eq(projects.slug, slug), isNull(projects.deletedAt)))
    .for("share");
  return project?.id ?? null;
}

/** @returns null when the name is somebody's; then the change must be abandoned. */
export async function insertTunnel(
  change: Change,
  actor: OrganizationActor,
  { label, ...tunnel }: NewTunnel,
  projectId: string,
): Promise<TunnelRow | null> {
  const { orgId } = actor;
  const { name, protocol, localPort, expiresAt, requestedExpiresAt } = tunnel;
  const ends = { expiresAt, getRequestedExpiry };
  const [row] = await change.tx
    .insert(tunnels)
    .values({ orgId, projectId, name, subdomain: label, protocol, localPort, ...ends })
    .onConflictDoNothing()
    .returning();
  if (!row) return null;
  const claim = { host: label, tunnelId: row.id, orgId, hasVisitors: protocol !== "tcp" };
  if (!(await claimHostname(change, claim))) return null;
  change.audit(actor, "tunnel_created", row.id, { subdomain: label });
  return row;
}

/** The row stays, for its counters and the audit log; its name is free and its agent is told. */
export function deleteTunnel(db: Database, actor: OrganizationActor, id: string): Promise<boolean> {
  return db.transaction(async (change) => {
    const deleted = await deleteTunnels(change, actor, eq(tunnels.id, id));
    return deleted > 0;
  });
}

/** Those of an organization that a condition picks; without one, all of them. @returns how many. */
export async function deleteTunnels(
  change: Change,
  actor: OrganizationActor,
  which?: SQL,
): Promise<number> {
  const deleted = await change.tx
    .update(tunnels)
    .set({ deletedAt: sql`now()`, agentConnected: false })
    .where(and(liveTunnels(actor.orgId), which))
    .returning({ id: tunnels.id });
  const ids = deleted.map(({ id }) => id);
  await retire(change, actor, ids, "deleted");
  for (const id of ids) {
    change.audit(actor, "tunnel_deleted", id);
  }
  return ids.length;
}

/** What starting and stopping a tunnel comes to. `unheard`: it is made, and its object will hear of it. */
export type StopResult = { status: TunnelRow["status"] } | "not_found" | "expired";

/** To stop what is stopped changes nothing, and tells the tunnel's object once more. */
export async function setStopped(
  db: Database,
  actor: MemberActor,
  id: string,
  isStopped: boolean,
): Promise<StopResult> {
  return db.changeAs(
    actor,
    async (change) => {
      const [tunnel] = await change.tx
        .select({
          row: tunnels,
          isDue: sql<boolean>`coalesce(${tunnels.expiresAt} <= now(), false)`,
        })
        .from(tunnels)
        .where(liveTunnel(actor.orgId, id))
        .for("update");
      if (!tunnel) return "not_found";
      let { row } = tunnel;
      if (row.status !== "expired" && tunnel.isDue) await expireTunnel(change, row);
      if (row.status === "expired" || tunnel.isDue) return "expired";
      if (isStopped ? row.stoppedAt === null : row.status !== "active") {
        row = await changeStopped(change, id, isStopped);
        const action = isStopped ? "tunnel_stopped" : "tunnel_started";
        change.audit(actor, action, id);
      }
      const stopping = { version: row.settingsVersion, isStopped };
      change.enqueue({ kind: "tunnel_stopping", payload: { tunnelId: id, stopping } });
      return { status: row.status };
    },
    { requireDelivery: true },
  );
}

async function changeStopped({ tx }: Change, id: string, isStopped: boolean): Promise<TunnelRow> {
  const [row] = await tx
    .update(tunnels)
    .set({
      ...(isStopped
        ? { stoppedAt: sql`now()`, status: "offline", agentConnected: false }
        : { stoppedAt: null, status: "active" }),
      settingsVersion: sql`${tunnels.settingsVersion} + 1`,
    })
    .where(eq(tunnels.id, id))
    .returning();
  return row!;
}

/** Tunnels whose time is over. @returns how many were found; a full batch may have left some. */
export function expireTunnels(db: Database): Promise<number> {
  return db.transaction(async (change) => {
    const due = await change.tx
      .select()
      .from(tunnels)
      .where(
        and(
          lte(tunnels.expiresAt, sql`now()`),
          isNull(tunnels.deletedAt),
          ne(tunnels.status, "expired"),
        ),
      )
      .limit(EXPIRY_BATCH_ROWS)
      .for("update", { skipLocked: true });
    for (const tunnel of due) await expireTunnel(change, tunnel);
    return due.length;
  });
}

/** @returns how long the tunnel has left; null when it is over, or has no end. */
export function expireIfDue(db: Database, id: string): Promise<number | null> {
  return db.transaction(async (change) => {
    const left = sql`ceil(extract(epoch from ${tunnels.expiresAt} - now()) * 1000)`;
    const leftMs: SQL<number | null> = left.mapWith(Number);
    const [tunnel] = await change.tx
      .select({ row: tunnels, leftMs })
      .from(tunnels)
      .where(and(eq(tunnels.id, id), isNull(tunnels.deletedAt), ne(tunnels.status, "expired")))
      .for("update");
    if (!tunnel || tunnel.leftMs === null) return null;
    if (tunnel.leftMs > 0) return tunnel.leftMs;
    await expireTunnel(change, tunnel.row);
    return null;
  });
}

export async function expireTunnel(change: Change, { id, orgId }: TunnelRow): Promise<void> {
  await change.tx
    .update(tunnels)
    .set({ status: "expired", agentConnected: false })
    .where(eq(tunnels.id, id));
  const actor = serviceActor(orgId);
  await retire(change, actor, [id], "expired");
  change.audit(actor, "tunnel_expired", id);
}

async function retire(
  change: Change,
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

/**
 * What the tunnel's object says of itself; news that is older than the row's changes nothing. In one
 * transaction, so that a tunnel's totals are the same wherever they are read.
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
      // An agent that said goodbye leaves nothing behind to ask: it was seen until now.
      lastSeenAt:
        lastSeenAtMs === null
          ? sql`case when ${tunnels.agentConnected} then now() else ${tunnels.lastSeenAt} end`
          : new Date(lastSeenAtMs),
      bytesIn,
      bytesOut,
      totalRequests: requests,
      maintenance,
      reportSequence: sequence,
      status: statusAfter(agentConnected),
    })
    .where(and(eq(tunnels.id, tunnelId), lt(tunnels.reportSequence, sequence)));
  if (report.traffic.length === 0) await update;
  else {
    const counted = [query.execute(writeCounters(report)), query.execute(writeTraffic(report))];
    await query.batch([update, ...counted]);
  }
}

/** For a row whose object has never heard of an agent. */
export async function markDisconnected({ query }: Database, tunnelId: string): Promise<void> {
  await query
    .update(tunnels)
    .set({ agentConnected: false, status: statusAfter(false) })
    .where(eq(tunnels.id, tunnelId));
}

/** What has expired or was stopped stays so; what was only started or reserved is waiting, not offline. */
function statusAfter(agentConnected: boolean) {
  const { status, stoppedAt } = tunnels;
  return agentConnected
    ? sql`case when ${status} = 'expired' or ${stoppedAt} is not null then ${status} else 'active' end`
    : sql`case when ${status} = 'active' and ${tunnels.agentConnected} then 'offline' else ${status} end`;
}

/** All tunnels that an agent serves now, as far as the rows know. */
export async function listConnectedTunnelIds({ query }: Database): Promise<string[]> {
  const rows = await query
    .select({ id: tunnels.id })
    .from(tunnels)
    .where(and(eq(tunnels.agentConnected, true), isNotNull(tunnels.connectedTokenId)));
  return rows.map(({ id }) => id);
}

/** Their newest rows, for a list whose news was old. */
export function listTunnelsById(
  { query }: Database,
  ids: string[],
): Promise<Omit<ListedTunnel, "projectSlug" | "relayHost" | "customDomains">[]> {
  return query.select(LISTED).from(tunnels).where(inArray(tunnels.id, ids));
}

/** Whether the organization has this tunnel, deleted ones aside. */
export async function hasTunnel(
  { query }: Pick<Database, "query">,
  orgId: string,
  id: string,
): Promise<boolean> {
  const rows = await query.select({ id: tunnels.id }).from(tunnels).where(liveTunnel(orgId, id));
  return rows.length > 0;
}
