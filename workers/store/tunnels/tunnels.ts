/** Tunnels' rows: creating, finding and listing them. */
import { and, eq, getTableColumns, inArray, sql } from "drizzle-orm";
import type { PgInsertValue } from "drizzle-orm/pg-core";
import {
  isHttpProtocol,
  Tunnel,
  type CreateTunnel,
} from "../../../protocol/schemas/tunnels/tunnels.ts";
import type { OrganizationActor } from "../audit.ts";
import { getRequestedExpiry, getTunnelExpiry } from "../billing/plans.ts";
import { requireRoom } from "../bounds.ts";
import type { UnitOfWork, Database } from "../database.ts";
import { claimHostname, findTakenName, type TakenName } from "../domains/hostnames.ts";
import { lockPlanAndRole, type MemberActor } from "../locks.ts";
import { isPortRefusal, type PortRefusal } from "../networks/relay-ports.ts";
import { lockProject } from "../organizations/projects.ts";
import { inOrganization, preparedList, SCOPE_ID } from "../page.ts";
import { domains } from "../tables/domains.ts";
import { relays } from "../tables/networks.ts";
import { projects } from "../tables/organizations.ts";
import { tunnels, type TunnelRow } from "../tables/tunnels.ts";
import type { Reader } from "../transaction.ts";
import { isUndeletedTunnel, isUndeletedTunnelIn, isUnendedTunnelIn } from "./undeleted-tunnels.ts";
import { reserveTunnelPort } from "./tcp-ports.ts";

type ListedColumn = keyof Tunnel & keyof TunnelRow;

/** The API's schema decides which columns are read: what it does not name is secret, or too long for a list. */
const LISTED_COLUMNS = Object.fromEntries(
  Object.entries(getTableColumns(tunnels)).filter(([name]) => name in Tunnel.shape),
) as Pick<ReturnType<typeof getTableColumns<typeof tunnels>>, ListedColumn>;

const LISTED = {
  ...LISTED_COLUMNS,
  authEnabled: sql<boolean>`${tunnels.basicAuthHash} is not null`,
  edgeAuthEnabled: sql<boolean>`${tunnels.identityGate} is not null`,
  policyActions: sql<number>`coalesce(jsonb_array_length(${tunnels.policy}->'actions'), 0)`,
  customDomains: sql<
    string[]
  >`array(select ${domains.domain} from ${domains} where ${domains.boundTunnelId} = ${tunnels.id} order by 1)`,
  projectSlug: projects.slug,
  /** The host of the relay that has the tunnel's public port. */
  relayHost: relays.host,
};

export type ListedTunnel = Awaited<ReturnType<typeof listTunnels>>[number];

function selectListed(reader: Reader) {
  return reader
    .select(LISTED)
    .from(tunnels)
    .innerJoin(projects, eq(projects.id, tunnels.projectId))
    .leftJoin(relays, eq(relays.id, tunnels.relayId));
}

/** Newest first. */
export const listTunnels = preparedList(
  "list_tunnels",
  inOrganization(tunnels),
  (query, isOnPage) => selectListed(query).where(and(isOnPage, isUndeletedTunnelIn(SCOPE_ID))),
);

/** @returns them in no particular order. */
export function listTunnelsById({ query }: Database, ids: string[]): Promise<ListedTunnel[]> {
  return selectListed(query).where(inArray(tunnels.id, ids));
}

/** Whether the organization has this tunnel and has not deleted it. */
export async function hasTunnel(
  { query }: Pick<Database, "query">,
  orgId: string,
  id: string,
): Promise<boolean> {
  const rows = await query
    .select({ id: tunnels.id })
    .from(tunnels)
    .where(isUndeletedTunnel(orgId, id));
  return rows.length > 0;
}

/** @returns null when the organization has no such tunnel. */
export async function findProtocol(
  { query }: Database,
  orgId: string,
  id: string,
): Promise<TunnelRow["protocol"] | null> {
  const [row] = await query
    .select({ protocol: tunnels.protocol })
    .from(tunnels)
    .where(isUndeletedTunnel(orgId, id));
  return row?.protocol ?? null;
}

/** A request for a tunnel, with the name and the project that the API has chosen where it names none. */
type TunnelRequest = Omit<CreateTunnel, "subdomain" | "projectSlug"> & {
  name: string;
  /** The name with the project's suffix. */
  label: string;
  projectSlug: string;
};

/** The plan decides how long the tunnel lives. Of several requests for one name, one succeeds. */
export function createTunnel(
  db: Database,
  actor: MemberActor,
  { projectSlug, ttlSeconds, relayId, publicPort: port, ...columns }: TunnelRequest,
): Promise<ListedTunnel | TakenName | PortRefusal | "project_not_found"> {
  return db.transaction(async (change) => {
    const { plan } = await lockPlanAndRole(change.tx, actor);
    const projectId = await lockProject(change.tx, actor.orgId, projectSlug);
    if (projectId === null) return "project_not_found";
    const now = new Date();
    const lifetime = {
      createdAt: now,
      expiresAt: getTunnelExpiry(plan, ttlSeconds, now),
      requestedExpiresAt: getRequestedExpiry(ttlSeconds, now),
    };
    const row = await insertTunnel(change, actor, { ...columns, ...lifetime, projectId });
    if ("freeAt" in row) return change.rollback(row);
    if (row.expiresAt) {
      const payload = { tunnelId: row.id, atMs: row.expiresAt.getTime() };
      change.enqueue({ kind: "tunnel_ends", payload });
    }
    if (row.protocol === "tcp") {
      const reserved = await reserveTunnelPort(change, row, { relayId, port });
      if (isPortRefusal(reserved)) return change.rollback(reserved);
    }
    const [listed] = await selectListed(change.tx).where(eq(tunnels.id, row.id));
    return listed!;
  });
}

type NewTunnel = Omit<PgInsertValue<typeof tunnels>, "orgId" | "subdomain"> & {
  /** The time from which its lifetime is counted. */
  createdAt: Date;
  /** The name with the project's suffix. */
  label: string;
};

/** When the name is taken, the caller must roll back. @throws LimitReachedError */
export async function insertTunnel(
  change: UnitOfWork,
  actor: OrganizationActor,
  { label, ...columns }: NewTunnel,
): Promise<TunnelRow | TakenName> {
  const { orgId } = actor;
  const counted = { table: tunnels, condition: isUnendedTunnelIn(orgId) };
  await requireRoom(change.tx, orgId, "tunnels", counted);
  const [row] = await change.tx
    .insert(tunnels)
    .values({ ...columns, orgId, subdomain: label })
    .onConflictDoNothing()
    .returning();
  if (!row) return { freeAt: null };
  const claim = { host: label, tunnelId: row.id, orgId, isRoutable: isHttpProtocol(row.protocol) };
  if (!(await claimHostname(change, claim))) return findTakenName(change, label, orgId);
  change.audit(actor, "tunnel_created", row.id, { subdomain: label });
  return row;
}
