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

export interface NewServer {
  publicKey: string;
  listenPort: number;
  /** `host:port` of a server that is reached without the relay. */
  ownEndpoint: string | null;
  /** undefined: the network's current relay, else the one with the most free ports. */
  relayId: string | undefined;
}

export type ServerRefusal = "not_found" | "key_of_device" | Exclude<PortRefusal, WantedPortRefusal>;
/** Refusals of a wanted port. Networks never want a specific port. */
type WantedPortRefusal = "port_taken" | PortOutsideRanges;

/** Registers or replaces the network's server. The network keeps its port. */
export function registerServer(
  db: Database,
  actor: CallerActor,
  id: string,
  server: NewServer,
): Promise<Network | ServerRefusal> {
  return db.changeAs(actor, async (change) => {
    const { tx, audit, rollback } = change;
    const before = await lockNetwork(tx, actor.orgId, id);
    if (!before) return "not_found";
    if (await isKeyOfDevice(change, id, server.publicKey)) return "key_of_device";
    const reserved = await reserveServerPort(change, before, server);
    if (typeof reserved === "string") return rollback(reserved);
    const [row] = await tx
      .update(privateNetworks)
      .set({
        serverPublicKey: server.publicKey,
        serverListenPort: server.listenPort,
        ownEndpoint: server.ownEndpoint,
        relayId: reserved?.relayId ?? null,
        reservedUdpPort: reserved?.port ?? null,
      })
      .where(eq(privateNetworks.id, id))
      .returning();
    if (hasServerChanged(before, row!)) revokeNetworkTickets(change, before, "server_changed");
    audit(actor, "network_server_registered", id, {
      name: before.name,
      publicKey: server.publicKey,
      relayId: row!.relayId,
      port: row!.reservedUdpPort,
    });
    return { ...row!, relayHost: await findRelayHost(tx, row!.relayId) };
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

/** @returns null when no port is available and the server has an endpoint of its own. */
async function reserveServerPort(
  change: UnitOfWork,
  { id, orgId }: NetworkRow,
  { relayId, ownEndpoint }: NewServer,
): Promise<ReservedPort | null | Exclude<PortRefusal, WantedPortRefusal>> {
  const reserved = await reservePort(change, { protocol: "udp", orgId, ownerId: id, relayId });
  if (!isPortRefusal(reserved)) return reserved;
  switch (reserved) {
    case "no_relay":
    case "exhausted":
    case "share_used":
    case "organization_not_approved":
      return ownEndpoint === null ? reserved : null;
    case "unknown_relay":
      return reserved;
    default:
      throw new Error("a port was refused to a network, which wants no specific one");
  }
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

/** Whether new tickets lead to a different address or key than earlier ones. */
function hasServerChanged(before: NetworkRow, after: NetworkRow): boolean {
  return (
    before.serverPublicKey !== null &&
    (before.serverPublicKey !== after.serverPublicKey ||
      before.relayId !== after.relayId ||
      before.reservedUdpPort !== after.reservedUdpPort)
  );
}
