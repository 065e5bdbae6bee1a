/** Devices of private networks, each with a public key and an address that the database assigns. */
import { and, eq, sql } from "drizzle-orm";
import { parseCidr } from "../../../shared/cidr.ts";
import type { Database } from "../database.ts";
import type { Transaction } from "../transaction.ts";
import { preparedList, type Page } from "../page.ts";
import type { CallerActor } from "../locks.ts";
import { privateNetworkDevices } from "../tables/networks.ts";
import { lockNetwork, type NetworkRow } from "./networks.ts";

export type DeviceRow = typeof privateNetworkDevices.$inferSelect;

/** The first host address is the server's. */
const FIRST_HOST_NUMBER = 2;

const list = preparedList(
  "list_private_network_devices",
  {
    scope: privateNetworkDevices.networkId,
    timestamp: privateNetworkDevices.createdAt,
    id: privateNetworkDevices.id,
  },
  (query, isOnPage) => query.select().from(privateNetworkDevices).where(isOnPage),
);

/** Newest first. For callers who have checked that the network belongs to the organization. */
export function listDevices(db: Database, networkId: string, page: Page): Promise<DeviceRow[]> {
  return list(db, networkId, page);
}

/** All devices, in the order of their addresses. */
export function listAllDevices({ query }: Database, networkId: string): Promise<DeviceRow[]> {
  return query
    .select()
    .from(privateNetworkDevices)
    .where(eq(privateNetworkDevices.networkId, networkId))
    .orderBy(privateNetworkDevices.hostNumber);
}

export async function findDevice(
  { query }: Database,
  networkId: string,
  id: string,
): Promise<DeviceRow | null> {
  const [row] = await query
    .select()
    .from(privateNetworkDevices)
    .where(and(eq(privateNetworkDevices.networkId, networkId), eq(privateNetworkDevices.id, id)));
  return row ?? null;
}

type Enrollment =
  | { device: DeviceRow; network: NetworkRow }
  | "not_found"
  | "network_full"
  | "key_of_server";

/**
 * The network is locked: of two requests for the last address, one succeeds. A key that is already enrolled keeps its
 * device.
 */
export function enrollDevice(
  db: Database,
  actor: CallerActor,
  networkId: string,
  { name, publicKey }: { name: string; publicKey: string },
): Promise<Enrollment> {
  return db.changeAs(actor, async ({ tx, audit }) => {
    const network = await lockNetwork(tx, actor.orgId, networkId);
    if (!network) return "not_found";
    if (network.serverPublicKey === publicKey) return "key_of_server";
    const enrolled = await findByKey(tx, networkId, publicKey);
    if (enrolled) return { device: enrolled, network };
    const hostNumber = await findFreeHostNumber(tx, network);
    if (hostNumber === null) return "network_full";
    const [device] = await tx
      .insert(privateNetworkDevices)
      .values({ networkId, name, publicKey, hostNumber })
      .returning();
    audit(actor, "network_device_enrolled", device!.id, { name, publicKey, networkId });
    return { device: device!, network };
  });
}

/** The device's address becomes free. */
export function removeDevice(
  db: Database,
  actor: CallerActor,
  networkId: string,
  id: string,
): Promise<"removed" | "not_found" | "network_not_found"> {
  return db.changeAs(actor, async ({ tx, audit }) => {
    if (!(await lockNetwork(tx, actor.orgId, networkId))) return "network_not_found";
    const [removed] = await tx
      .delete(privateNetworkDevices)
      .where(and(eq(privateNetworkDevices.networkId, networkId), eq(privateNetworkDevices.id, id)))
      .returning();
    if (!removed) return "not_found";
    audit(actor, "network_device_removed", id, {
      name: removed.name,
      publicKey: removed.publicKey,
      networkId,
    });
    return "removed";
  });
}

async function findByKey(
  tx: Transaction,
  networkId: string,
  publicKey: string,
): Promise<DeviceRow | undefined> {
  const { networkId: network, publicKey: key } = privateNetworkDevices;
  const [row] = await tx
    .select()
    .from(privateNetworkDevices)
    .where(and(eq(network, networkId), eq(key, publicKey)));
  return row;
}

/** The lowest free one. The network address and the broadcast address are not assigned to hosts. */
async function findFreeHostNumber(
  tx: Transaction,
  { id, cidr }: NetworkRow,
): Promise<number | null> {
  const last = parseCidr(cidr)!.ipv4!.size - 2;
  const { networkId, hostNumber } = privateNetworkDevices;
  const { rows } = await tx.execute<{ number: number }>(sql`
    select candidate.number
    from generate_series(${FIRST_HOST_NUMBER}::int, ${last}::int) as candidate(number)
    where not exists (
      select from ${privateNetworkDevices} where ${networkId} = ${id} and ${hostNumber} = candidate.number
    )
    order by candidate.number
    limit 1`);
  return rows[0]?.number ?? null;
}
