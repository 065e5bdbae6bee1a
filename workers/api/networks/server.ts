/** /private-networks/{id}/server: the WireGuard server of a network, and what its agent needs at the relay. */
import { parseCidr } from "../../../shared/cidr.ts";
import { TOKEN_BANDWIDTH_DEFAULT_MBPS } from "../../../protocol/limits.ts";
import {
  NetworkConfig,
  PrivateNetwork,
  RegisterServer,
  RelayAccess,
} from "../../../protocol/schemas/networks.ts";
import { Id } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { issueRelayAccess } from "../../identity/tokens/relay-tickets.ts";
import { listAllDevices } from "../../store/networks/devices.ts";
import { findRelay } from "../../store/networks/relays.ts";
import { registerServer, unregisterServer } from "../../store/networks/server.ts";
import { userNonce } from "../../store/networks/ticket-revocations.ts";
import { findOrganization } from "../../store/organizations/organizations.ts";
import { allowOrAgent } from "../guard.ts";
import { jsonResponse, getCallerActor, invalidField, route, type ApiContext } from "../route.ts";
import {
  FOR_AGENTS,
  networkNotFound,
  createNetworkRouter,
  requireNetwork,
  serverNotRegistered,
} from "./area.ts";
import { writeServerConfig } from "./configs.ts";
import { getAddressAt, getPublicEndpoint, toOneNetwork } from "./views.ts";

export const networkServers = createNetworkRouter();

networkServers.openapi(
  route({
    method: "put",
    path: "/private-networks/{id}/server",
    summary: "Register the server of a private network",
    description: `Again, it replaces the key and keeps the port. ${FOR_AGENTS}`,
    guard: allowOrAgent("networks:write"),
    params: Id,
    body: RegisterServer,
    responses: { 200: jsonResponse("With the port that is reserved for it.", PrivateNetwork) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const body = c.req.valid("json");
    const network = await registerServer(c.var.db, getCallerActor(c), c.req.valid("param").id, {
      publicKey: body.server_public_key,
      listenPort: body.server_listen_port,
      ownEndpoint: body.public_endpoint ?? null,
      relayId: body.relay_id,
    });
    switch (network) {
      case "not_found":
        throw networkNotFound();
      case "key_of_device":
        throw invalidField("server_public_key", "is the key of one of the network's devices");
      case "unknown_relay":
        throw invalidField("relay_id", "names no relay of this service");
      case "no_relay":
        throw new ApiError("unavailable", "No relay has connected to this service yet.");
      case "exhausted":
        throw new ApiError("unavailable", "All UDP ports of the relay are reserved.");
      default:
        return c.json(await toOneNetwork(c.env, network), 200);
    }
  },
);

networkServers.openapi(
  route({
    method: "delete",
    path: "/private-networks/{id}/server",
    summary: "Remove the server of a private network",
    description: `The network keeps its port and its devices. ${FOR_AGENTS}`,
    guard: allowOrAgent("networks:write"),
    params: Id,
    responses: { 200: jsonResponse("Its agent is disconnected.", PrivateNetwork) },
  }),
  async (c) => {
    const network = await unregisterServer(c.var.db, getCallerActor(c), c.req.valid("param").id);
    if (network === "not_found") throw networkNotFound();
    return c.json(await toOneNetwork(c.env, network), 200);
  },
);

networkServers.openapi(
  route({
    method: "get",
    path: "/private-networks/{id}/server-config",
    summary: "The server's WireGuard configuration",
    description: `For \`wg-quick\`, with a placeholder for the private key. ${FOR_AGENTS}`,
    guard: allowOrAgent("networks:read"),
    params: Id,
    responses: { 200: jsonResponse("With a peer for each device.", NetworkConfig) },
    failures: ["server_not_registered"],
  }),
  async (c) => {
    const network = await requireNetwork(c, c.req.valid("param").id);
    const { name, cidr, serverListenPort: listenPort } = network;
    if (listenPort === null) throw serverNotRegistered();
    const devices = await listAllDevices(c.var.db, network.id);
    const config = writeServerConfig({
      networkName: name,
      address: getAddressAt(cidr, 1),
      prefix: parseCidr(cidr)!.prefix,
      listenPort,
      endpoint: getPublicEndpoint(network),
      isRelayed: network.ownEndpoint === null,
      devices: devices.map(({ name, publicKey, hostNumber }) => ({
        name,
        publicKey,
        address: getAddressAt(cidr, hostNumber),
      })),
    });
    return c.json({ config }, 200);
  },
);

networkServers.openapi(
  route({
    method: "post",
    path: "/private-networks/{id}/relay-ticket",
    summary: "What an agent needs to serve a private network",
    description: `A ticket of five minutes for its relay (docs/relay-protocol.md). ${FOR_AGENTS}`,
    guard: allowOrAgent("networks:write"),
    params: Id,
    responses: { 200: jsonResponse("The newest ticket takes the port over.", RelayAccess) },
    failures: ["server_not_registered", "unavailable"],
  }),
  async (c) => {
    const network = await requireNetwork(c, c.req.valid("param").id);
    const { serverPublicKey, relayId, reservedUdpPort: port } = network;
    if (serverPublicKey === null) throw serverNotRegistered();
    const organization = await findOrganization(c.var.db, network.orgId);
    if (organization?.approvalStatus !== "approved") {
      throw new ApiError("forbidden", "The organization waits for approval.");
    }
    const relay = relayId === null ? null : await findRelay(c.var.db, relayId);
    if (!relay || port === null || port < relay.firstPort || port > relay.lastPort) {
      const message = "The network has no port on a relay. Register its server again.";
      throw new ApiError("unavailable", message);
    }
    const access = await issueRelayAccess(c.var.config, relay, {
      kind: "network",
      sub: network.id,
      org: network.orgId,
      port,
      server_public_key: serverPublicKey,
      ...getCredential(c),
    });
    return c.json(access, 200);
  },
);

/** A person's tickets have the rate of a token that names none. */
function getCredential(c: ApiContext): { nonce: string; mbps: number } {
  const { agentToken } = c.var;
  if (agentToken) return { nonce: agentToken.nonce, mbps: agentToken.bandwidthLimitMbps };
  return { nonce: userNonce(c.var.principal.userId), mbps: TOKEN_BANDWIDTH_DEFAULT_MBPS };
}
