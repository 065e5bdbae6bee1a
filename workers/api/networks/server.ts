/** /private-networks/{id}/server: the WireGuard server of a network, and the relay tickets of its agent. */
import { parseCidr } from "../../../shared/cidr.ts";
import { TOKEN_BANDWIDTH_DEFAULT_MBPS } from "../../../protocol/limits.ts";
import {
  NetworkConfig,
  PrivateNetwork,
  RegisterServer,
  RelayAccess,
} from "../../../protocol/schemas/networks.ts";
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { issueRelayAccess } from "../../identity/tokens/relay-tickets.ts";
import { listAllDevices } from "../../store/networks/devices.ts";
import { markPortServed } from "../../store/networks/relay-ports.ts";
import { registerServer, unregisterServer } from "../../store/networks/server.ts";
import { toUserNonce } from "../../store/networks/ticket-revocations.ts";
import { findApprovalRefusal } from "../../store/organizations/approval.ts";
import { findOrganization } from "../../store/organizations/organizations.ts";
import { ACCEPTED_BEARERS, allowOrAgent } from "../guard.ts";
import {
  getCallerActor,
  invalidField,
  jsonResponse,
  organizationNotApproved,
  route,
  type ApiContext,
} from "../route.ts";
import {
  networkNotFound,
  createNetworkRouter,
  requireNetwork,
  serverNotRegistered,
} from "./router.ts";
import { requireServerPort, toServerPortError } from "./server-port.ts";
import { formatServerConfig } from "./wireguard-configs.ts";
import { getAddressAt, getPublicEndpoint, loadNetworkView } from "./views.ts";

export const networkServers = createNetworkRouter();

networkServers.openapi(
  route({
    operationId: "registerNetworkServer",
    method: "put",
    path: "/private-networks/{id}/server",
    summary: "Register the server of a private network",
    description: `Registering again replaces the key and does not change the port. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("networks:write"),
    params: IdParams,
    body: RegisterServer,
    responses: {
      200: jsonResponse("The network, with the UDP port that is reserved for it.", PrivateNetwork),
    },
    failures: ["conflict", "unavailable"],
  }),
  async (c) => {
    const body = c.req.valid("json");
    const network = await registerServer(c.var.db, getCallerActor(c), c.req.valid("param").id, {
      publicKey: body.server_public_key,
      listenPort: body.server_listen_port,
      ownEndpoint: body.public_endpoint ?? null,
      relayId: body.relay_id,
    });
    if (network === "not_found") throw networkNotFound();
    if (network === "key_of_device") {
      throw invalidField(
        "server_public_key",
        "must not be the key of one of the network's devices",
      );
    }
    if (typeof network === "string") throw toServerPortError(network);
    return c.json(await loadNetworkView(c.env, network), 200);
  },
);

networkServers.openapi(
  route({
    operationId: "removeNetworkServer",
    method: "delete",
    path: "/private-networks/{id}/server",
    summary: "Remove the server of a private network",
    description: `The port and the devices of the network do not change. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("networks:write"),
    params: IdParams,
    responses: {
      200: jsonResponse("Removed. The agent of the network is disconnected.", PrivateNetwork),
    },
  }),
  async (c) => {
    const network = await unregisterServer(c.var.db, getCallerActor(c), c.req.valid("param").id);
    if (network === "not_found") throw networkNotFound();
    return c.json(await loadNetworkView(c.env, network), 200);
  },
);

networkServers.openapi(
  route({
    operationId: "getNetworkServerConfig",
    method: "get",
    path: "/private-networks/{id}/server-config",
    summary: "Get the WireGuard configuration of the server",
    description: `In the format of \`wg-quick\`, with a placeholder for the private key. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("networks:read"),
    params: IdParams,
    responses: {
      200: jsonResponse("The configuration, with a peer for each device.", NetworkConfig),
    },
    failures: ["server_not_registered"],
  }),
  async (c) => {
    const network = await requireNetwork(c, c.req.valid("param").id);
    const { name, cidr, serverListenPort: listenPort } = network;
    if (listenPort === null) throw serverNotRegistered();
    const devices = await listAllDevices(c.var.db, network.id);
    const config = formatServerConfig({
      networkName: name,
      address: getAddressAt(cidr, 1),
      prefix: parseCidr(cidr)!.prefixLength,
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
    operationId: "createNetworkRelayTicket",
    method: "post",
    path: "/private-networks/{id}/relay-ticket",
    summary: "Get a relay ticket for a private network",
    description: `With the ticket, which is valid for five minutes, an agent serves the network at its relay (docs/protocols/relay-protocol.md). A port that is no longer in the relay's range is replaced, after which devices need new configurations. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("networks:write"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "The ticket, and the address of the relay that accepts it. The newest ticket takes over the port.",
        RelayAccess,
      ),
    },
    failures: ["server_not_registered", "conflict", "unavailable"],
  }),
  async (c) => {
    const network = await requireNetwork(c, c.req.valid("param").id);
    const { serverPublicKey } = network;
    if (serverPublicKey === null) throw serverNotRegistered();
    const organization = await findOrganization(c.var.db, network.orgId);
    if (!organization) throw networkNotFound();
    const refusal = findApprovalRefusal(organization.approvalStatus);
    if (refusal !== null) throw organizationNotApproved(refusal);
    const { relay, port } = await requireServerPort(c, network);
    await markPortServed(c.var.db, network.id);
    const access = await issueRelayAccess(c.env, c.var.config, relay, {
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

/** The tickets of a person have the default bandwidth of a token. */
function getCredential(c: ApiContext): { nonce: string; mbps: number } {
  const { agentToken } = c.var;
  if (agentToken) return { nonce: agentToken.nonce, mbps: agentToken.bandwidthLimitMbps };
  return { nonce: toUserNonce(c.var.principal.userId), mbps: TOKEN_BANDWIDTH_DEFAULT_MBPS };
}
