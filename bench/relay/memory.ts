/** The memory of a relay with a thousand reserved ports, a hundred of them served by agents. */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { NetworkAgent } from "../../agent/vpn/network-agent.ts";
import { NetworkApi } from "../../agent/vpn/network-api.ts";
import type { PrivateNetwork } from "../../protocol/schemas/networks.ts";
import { mintToken } from "../../test/harness/server/api.ts";
import type { RealNetwork } from "../../test/harness/networks/real-network.ts";
import { createPeer, type WireGuardPeer } from "../../test/harness/wireguard/peer.ts";
import { getResidentMiB } from "../processes.ts";
import type { Row } from "../report.ts";

const PORTS = 1_000;
const NETWORKS = 100;
/** The relay has a network namespace of its own, so every port is free. */
const FIRST_PORT = 40_000;

export async function benchRelayMemory(real: RealNetwork): Promise<Row> {
  const relay = await real.startRelay({ id: "memory", port: FIRST_PORT, ports: PORTS });
  const owner = await real.api.owner();
  const atStart = getResidentMiB(relay.pid);
  const token = Buffer.from((await mintToken(owner)).wireBytes, "base64");
  await using server = await createPeer({ echo: true });
  const agents: NetworkAgent[] = [];
  const clients: WireGuardPeer[] = [];
  const url = new URL(real.api.server.url);
  for (let n = 0; n < NETWORKS; n += 1) {
    const name = `network-${n}`;
    const created = await owner.post<PrivateNetwork>("/private-networks", {
      name,
      cidr: "10.9.0.0/24",
    });
    const path = `/private-networks/${created.body.id}/server`;
    const registered = await owner.put<PrivateNetwork>(path, {
      server_public_key: server.publicKey,
      server_listen_port: server.port,
      relay_id: relay.id,
    });
    const api = new NetworkApi({
      server: url,
      token,
      authorities: undefined,
      renewal: "Get a new token.",
    });
    const agent = new NetworkAgent({ api, network: name }, () => Promise.resolve());
    const ready = new Promise((resolve) => agent.once("ready", resolve));
    agent.start();
    agents.push(agent);
    await ready;
    const [address = "", port = ""] = (registered.body.public_endpoint ?? "").split(":");
    const client = await createPeer({ address: real.namespaces.address });
    await client.handshake({ address, port: Number(port) }, server.publicKey);
    clients.push(client);
  }
  await reserveOtherPorts(real, relay.id, owner.orgId, relay.port);
  for (const client of clients) client.send("a datagram");
  await sleep(5_000);
  const row = {
    group: "memory of a relay",
    "ports reserved": PORTS,
    agents: agents.length,
    sessions: clients.length,
    "MiB at the start": Math.round(atStart),
    MiB: Math.round(getResidentMiB(relay.pid)),
  };
  for (const agent of agents) agent.close();
  for (const client of clients) await client.close();
  return row;
}

/** A port that no agent serves exists only as a row: the relay itself has no state for it. */
async function reserveOtherPorts(
  { api }: RealNetwork,
  relayId: string,
  orgId: string,
  agentPort: number,
): Promise<void> {
  for (let port = agentPort + 1; port <= agentPort + PORTS; port += 1) {
    await api.sql(
      `insert into relay_ports (relay_id, protocol, port, org_id, owner_id)
       values ($1, 'udp', $2, $3, $4) on conflict do nothing`,
      [relayId, port, orgId, randomUUID()],
    );
  }
}
