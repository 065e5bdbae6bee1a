/** The WireGuard server of a private network: its public key, and the relay's port that leads to it. */
import { and, eq } from "drizzle-orm";
import type { UnitOfWork, Database } from "../database.ts";
import type { CallerActor } from "../locks.ts";
import { privateNetworkDevices, privateNetworks } from "../tables/networks.ts";
import { lockNetwork, revokeNetworkTickets, type Network, type NetworkRow } from "./networks.ts";
import {
  isPortRefusal,
  reservePort,
  type PortOutsideRanges,
  type PortRefusal,
  type ReservedPort,
} from "./relay-ports.ts";
import { findRelayHost } from "./relays.ts";

interface NewServer {
  publicKey: string;
  listenPort: number;
  /** `host:port` of a server that is reached without the relay. */
  ownEndpoint: string | null;
  /** undefined: the network's current relay, else the one with the most free ports. */
  relayId: string | undefined;
}

/** Networks never want a specific port. */
export type ServerPortRefusal = Exclude<PortRefusal, "port_taken" | PortOutsideRanges>;
type ServerRefusal = "not_found" | "key_of_device" | ServerPortRefusal;

/** Registers or replaces the network's server. The network keeps its port. */
export function registerServer(
  db: Database,
  actor: CallerActor,
  id: string,
  server: NewServer,
): Promise<Network | ServerRefusal> {
  return db.changeAs(actor, async (change) => {
    const before = await lockNetwork(change.tx, actor.orgId, id);
    if (!before) return "not_found";
    if (await isKeyOfDevice(change, id, server.publicKey)) return "key_of_device";
    const reserved = await reserveServerPort(change, before, server.relayId);
    const isRefused = typeof reserved === "string";
    // A server with an endpoint of its own needs no port.
    if (isRefused && (server.ownEndpoint === null || reserved === "unknown_relay"))
      return change.rollback(reserved);
    return saveServer(change, actor, before, {
      serverPublicKey: server.publicKey,
      serverListenPort: server.listenPort,
      ownEndpoint: server.ownEndpoint,
      relayId: isRefused ? null : reserved.relayId,
      reservedUdpPort: isRefused ? null : reserved.port,
    });
  });
}

/**
 * Replaces a port that the operator has taken out of the relay's range, or reserves one for a server that was registered
 * when no relay was available.
 */
export function replaceServerPort(
  db: Database,
  actor: CallerActor,
  id: string,
): Promise<Network | "not_found" | ServerPortRefusal> {
  return db.changeAs(actor, async (change) => {
    const before = await lockNetwork(change.tx, actor.orgId, id);
    if (!before) return "not_found";
    const reserved = await reserveServerPort(change, before, before.relayId ?? undefined);
    if (typeof reserved === "string") return change.rollback(reserved);
    const { relayId, port: reservedUdpPort } = reserved;
    return saveServer(change, actor, before, { relayId, reservedUdpPort });
  });
}

/** Removes the server, if there is one. The port remains reserved until the network is deleted. */
export function unregisterServer(
  db: Database,
  actor: CallerActor,
  id: string,
): Promise<Network | "not_found"> {
  return db.changeAs(actor, async (change) => {
    const { tx, audit } = change;
    const before = await lockNetwork(tx, actor.orgId, id);
    if (!before) return "not_found";
    const [row] = await tx
      .update(privateNetworks)
      .set({ serverPublicKey: null, serverListenPort: null, ownEndpoint: null })
      .where(eq(privateNetworks.id, id))
      .returning();
    if (before.serverPublicKey !== null) {
      revokeNetworkTickets(change, before, "server_changed");
      audit(actor, "network_server_removed", id, {
        name: before.name,
        publicKey: before.serverPublicKey,
      });
    }
    return { ...row!, relayHost: await findRelayHost(tx, row!.relayId) };
  });
}

async function saveServer(
  change: UnitOfWork,
  actor: CallerActor,
  before: NetworkRow,
  columns: Partial<NetworkRow>,
): Promise<Network> {
  const { tx, audit } = change;
  const [after] = await tx
    .update(privateNetworks)
    .set(columns)
    .where(eq(privateNetworks.id, before.id))
    .returning();
  const { name, serverPublicKey: publicKey, relayId, reservedUdpPort: port } = after!;
  if (hasServerChanged(before, after!)) revokeNetworkTickets(change, before, "server_changed");
  audit(actor, "network_server_registered", before.id, { name, publicKey, relayId, port });
  return { ...after!, relayHost: await findRelayHost(tx, relayId) };
}

async function reserveServerPort(
  change: UnitOfWork,
  { id, orgId }: NetworkRow,
  relayId: string | undefined,
): Promise<ReservedPort | ServerPortRefusal> {
  const reserved = await reservePort(change, { protocol: "udp", orgId, ownerId: id, relayId });
  if (isPortRefusal(reserved) && (reserved === "port_taken" || typeof reserved === "object"))
    throw new Error("a network was refused a specific port, but never wants one");
  return reserved;
}

async function isKeyOfDevice(
  { tx }: UnitOfWork,
  networkId: string,
  publicKey: string,
): Promise<boolean> {
  const { networkId: network, publicKey: key } = privateNetworkDevices;
  const isKey = and(eq(network, networkId), eq(key, publicKey));
  return (await tx.$count(privateNetworkDevices, isKey)) > 0;
}

/** Whether the agent must connect again, with a new ticket, and read the port on which the server listens. */
function hasServerChanged(before: NetworkRow, after: NetworkRow): boolean {
  return (
    before.serverPublicKey !== null &&
    (before.serverPublicKey !== after.serverPublicKey ||
      before.serverListenPort !== after.serverListenPort ||
      before.relayId !== after.relayId ||
      before.reservedUdpPort !== after.reservedUdpPort)
  );
}
