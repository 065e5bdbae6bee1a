/** /private-networks: WireGuard networks whose server is reached through an agent. */
import { z } from "zod";
import { NETWORKS_PER_ORG_MAX } from "../../limits.ts";
import { CreateNetwork, PrivateNetwork } from "../../../protocol/schemas/networks.ts";
import { IdParams, Ok, PageQuery } from "../../../protocol/schemas/scalars.ts";
import { ApiError } from "../../errors.ts";
import { createNetwork, deleteNetwork, listNetworks } from "../../store/networks/networks.ts";
import { ACCEPTED_BEARERS, allowReadOrAgent, allowOrAgent, readAsCaller } from "../guard.ts";
import { getCallerActor, jsonResponse, route } from "../route.ts";
import { networkNotFound, createNetworkRouter, requireNetwork } from "./router.ts";
import { loadNetworkViews, loadNetworkView } from "./views.ts";

export const networks = createNetworkRouter();

networks.openapi(
  route({
    operationId: "listPrivateNetworks",
    method: "get",
    path: "/private-networks",
    summary: "List private networks",
    description: ACCEPTED_BEARERS,
    guard: allowReadOrAgent("networks:read"),
    query: PageQuery,
    responses: {
      200: jsonResponse("The private networks, newest first.", z.array(PrivateNetwork)),
    },
  }),
  async (c) => {
    const page = c.req.valid("query");
    const rows = await readAsCaller(c, (db, orgId) => listNetworks(db, orgId, page));
    return c.json(await loadNetworkViews(c.env, rows), 200);
  },
);

networks.openapi(
  route({
    operationId: "createPrivateNetwork",
    method: "post",
    path: "/private-networks",
    summary: "Create a private network",
    description: `The server of the network is registered with \`PUT /private-networks/{id}/server\`. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("networks:write"),
    body: CreateNetwork,
    responses: { 201: jsonResponse("Created.", PrivateNetwork) },
    failures: ["invalid_name", "invalid_cidr", "duplicate_name", "conflict"],
  }),
  async (c) => {
    const network = await createNetwork(c.var.db, getCallerActor(c), c.req.valid("json"));
    switch (network) {
      case "duplicate_name":
        throw new ApiError(
          "duplicate_name",
          "The organization already has a private network with this name.",
        );
      case "too_many": {
        const message = `An organization can have at most ${NETWORKS_PER_ORG_MAX} private networks.`;
        throw new ApiError("conflict", message);
      }
      default:
        return c.json(await loadNetworkView(c.env, network), 201);
    }
  },
);

networks.openapi(
  route({
    operationId: "getPrivateNetwork",
    method: "get",
    path: "/private-networks/{id}",
    summary: "Get a private network",
    description: ACCEPTED_BEARERS,
    guard: allowOrAgent("networks:read"),
    params: IdParams,
    responses: { 200: jsonResponse("The network, with its state at the relay.", PrivateNetwork) },
  }),
  async (c) => {
    const network = await requireNetwork(c, c.req.valid("param").id);
    return c.json(await loadNetworkView(c.env, network), 200);
  },
);

networks.openapi(
  route({
    operationId: "deletePrivateNetwork",
    method: "delete",
    path: "/private-networks/{id}",
    summary: "Delete a private network",
    description: `Deletes the devices of the network too. ${ACCEPTED_BEARERS}`,
    guard: allowOrAgent("networks:write"),
    params: IdParams,
    responses: {
      200: jsonResponse(
        "Deleted. The agent of the network is disconnected, and its port is free.",
        Ok,
      ),
    },
  }),
  async (c) => {
    const isDeleted = await deleteNetwork(c.var.db, getCallerActor(c), c.req.valid("param").id);
    if (!isDeleted) throw networkNotFound();
    return c.json({ ok: true as const }, 200);
  },
);
