/** /connections: the agents that are connected now, from the organization's object. */
import { z } from "zod";
import type { ConnectedAgent } from "../../../durable-objects/organization/connected-agents.ts";
import { AgentId, Connection } from "../../../protocol/schemas/tunnels/connections.ts";
import { Ok } from "../../../protocol/schemas/scalars.ts";
import { callObject } from "../../call-object.ts";
import { organizationObject } from "../../objects.ts";
import { endConnection } from "../../store/tunnels/connections.ts";
import { allow } from "../guard.ts";
import { createRouter, getMemberActor, jsonResponse, notFound, route } from "../route.ts";

export const connections = createRouter();

connections.openapi(
  route({
    operationId: "listConnections",
    method: "get",
    path: "/connections",
    summary: "List connected agents",
    guard: allow("connections:read"),
    responses: { 200: jsonResponse("All connected agents, newest first.", z.array(Connection)) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const organization = organizationObject(c.env, c.var.principal.orgId);
    const entries = await callObject(organization.listConnections());
    return c.json(entries.map(toConnection), 200);
  },
);

connections.openapi(
  route({
    operationId: "endConnection",
    method: "delete",
    path: "/connections/{agent_id}",
    summary: "Disconnect an agent",
    description: "The agent reconnects after about five seconds, unless its token is revoked.",
    guard: allow("connections:write"),
    params: AgentId,
    responses: { 200: jsonResponse("The agent is disconnected and no longer listed.", Ok) },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { agent_id: agentId } = c.req.valid("param");
    const organization = organizationObject(c.env, c.var.principal.orgId);
    const tunnelId = await callObject(organization.findTunnelOfAgent(agentId));
    if (tunnelId === null) throw notFound("connected agent");
    switch (await endConnection(c.var.db, getMemberActor(c), { agentId, tunnelId })) {
      case "ended":
        return c.json({ ok: true as const }, 200);
      case "not_found":
        throw notFound("connected agent");
    }
  },
);

/** Each connection of an agent serves one tunnel. */
function toConnection({ agentId, remoteIp, connectedAtMs, tunnelId }: ConnectedAgent): Connection {
  return {
    agent_id: agentId,
    remote_ip: remoteIp,
    connected_at: new Date(connectedAtMs).toISOString(),
    tunnels: [tunnelId],
  };
}
