/** Private networks' rows, and the revocations that their relays receive. */
import { isRowOfOrganization } from "../owned-rows.ts";
import { eq } from "drizzle-orm";
import { NETWORKS_PER_ORG_MAX } from "../../limits.ts";
import type { Revocation } from "../../../protocol/relay/link.ts";
import type { OrganizationActor } from "../audit.ts";
import type { UnitOfWork, Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { inOrganization, preparedList, type Page } from "../page.ts";
import { lockOrganization, type CallerActor } from "../locks.ts";
import { privateNetworks, relays } from "../tables/networks.ts";
import { releasePort } from "./relay-ports.ts";

export type NetworkRow = typeof privateNetworks.$inferSelect;
/** `relayHost` is the host of the network's port; null while it has none. */
export type Network = NetworkRow & { relayHost: string | null };

const list = preparedList(
  "list_private_networks",
  inOrganization(privateNetworks),
  (query, isOnPage) =>
    query
      .select({ network: privateNetworks, relayHost: relays.host })
      .from(privateNetworks)
      .leftJoin(relays, eq(relays.id, privateNetworks.relayId))
      .where(isOnPage),
);

/** Newest first. */
export async function listNetworks(db: Database, orgId: string, page: Page): Promise<Network[]> {
  const rows = await list(db, orgId, page);
  return rows.map(({ network, relayHost }) => ({ ...network, relayHost }));
}

export async function findNetwork(
  { query }: Database,
  orgId: string,
  id: string,
): Promise<Network | null> {
  const [row] = await query
    .select({ network: privateNetworks, relayHost: relays.host })
    .from(privateNetworks)
    .leftJoin(relays, eq(relays.id, privateNetworks.relayId))
    .where(isRowOfOrganization(privateNetworks, orgId, id));
  return row ? { ...row.network, relayHost: row.relayHost } : null;
}

/** The lock makes changes of a network, of its server and of its devices wait for each other. */
export async function lockNetwork(
  tx: Transaction,
  orgId: string,
  id: string,
): Promise<NetworkRow | null> {
  const [row] = await tx
    .select()
    .from(privateNetworks)
    .where(isRowOfOrganization(privateNetworks, orgId, id))
    .for("no key update");
  return row ?? null;
}

/** The organization is locked, so that concurrent requests count each other's networks. */
export function createNetwork(
  db: Database,
  actor: CallerActor,
  { name, cidr }: { name: string; cidr: string },
): Promise<Network | "duplicate_name" | "too_many"> {
  return db.transaction(async ({ tx, audit }) => {
    const org = await lockOrganization(tx, actor);
    const networks = await tx.$count(privateNetworks, eq(privateNetworks.orgId, org.id));
    if (networks >= NETWORKS_PER_ORG_MAX) return "too_many";
    const [row] = await tx
      .insert(privateNetworks)
      .values({ orgId: org.id, name, cidr })
      .onConflictDoNothing()
      .returning();
    if (!row) return "duplicate_name";
    audit(actor, "network_created", row.id, { name, cidr });
    return { ...row, relayHost: null };
  });
}

export function deleteNetwork(
  db: Database,
  actor: OrganizationActor,
  id: string,
): Promise<boolean> {
  return db.transaction(async (change) => (await deleteNetworks(change, actor, id)) > 0);
}

/** Deletes one or all of an organization's networks with their devices, and releases their ports. @returns how many. */
export async function deleteNetworks(
  change: UnitOfWork,
  actor: OrganizationActor,
  id?: string,
): Promise<number> {
  const { orgId } = actor;
  const deleted = await change.tx
    .delete(privateNetworks)
    .where(
      id === undefined
        ? eq(privateNetworks.orgId, orgId)
        : isRowOfOrganization(privateNetworks, orgId, id),
    )
    .returning();
  for (const network of deleted) {
    await releasePort(change, network.id);
    revokeNetworkTickets(change, network, "network_deleted");
    change.audit(actor, "network_deleted", network.id, { name: network.name, cidr: network.cidr });
  }
  return deleted.length;
}

/** Revokes all tickets issued so far at the network's relay. Does nothing when the network has never had a relay. */
export function revokeNetworkTickets(
  { enqueue }: Pick<UnitOfWork, "enqueue">,
  { id, relayId }: Pick<NetworkRow, "id" | "relayId">,
  reason: Revocation["reason"],
): void {
  if (relayId === null) return;
  const revocation: Revocation = {
    type: "revoke",
    kind: "network",
    id,
    reason,
    // No ticket is valid for a deleted network, so that one that is being signed at the same time is refused too.
    untilGeneration: reason === "network_deleted" ? Number.MAX_SAFE_INTEGER : Date.now(),
  };
  enqueue({ kind: "relay_revocation", payload: { relayId, revocation } });
}
