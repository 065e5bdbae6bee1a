/** /tunnels/{id}/agents: the agents that serve a tunnel now, from its object. */
import { z } from "zod";
import type { AgentState } from "../../../durable-objects/rpc.ts";
import { IdParams } from "../../../protocol/schemas/scalars.ts";
import { TunnelAgent } from "../../../protocol/schemas/tunnels/connections.ts";
import { callObject } from "../../call-object.ts";
import { tunnelObject } from "../../objects.ts";
import { hasTunnel } from "../../store/tunnels/tunnels.ts";
import { allowOrAgent, getOrgId } from "../guard.ts";
import { createRouter, jsonResponse, notFound, route } from "../route.ts";

export const tunnelAgents = createRouter();

tunnelAgents.openapi(
  route({
    operationId: "listTunnelAgents",
    method: "get",
    path: "/tunnels/{id}/agents",
    summary: "List the agents of a tunnel",
    description:
      "Usually one. Several serve the tunnel as a pool: each request goes to the healthy agent with the fewest in flight.",
    guard: allowOrAgent("tunnels:read"),
    params: IdParams,
    responses: {
      200: jsonResponse("The agents that serve now, the oldest first.", z.array(TunnelAgent)),
    },
    failures: ["unavailable"],
  }),
  async (c) => {
    const { id } = c.req.valid("param");
    if (!(await hasTunnel(c.var.db, getOrgId(c), id))) throw notFound("tunnel");
    const agents = await callObject(tunnelObject(c.env, id).listAgents());
    return c.json(agents.map(toTunnelAgent), 200);
  },
);

function toTunnelAgent(agent: AgentState): TunnelAgent {
  return {
    agent_id: agent.agentId,
    remote_ip: agent.remoteIp,
    connected_at: new Date(agent.connectedAtMs).toISOString(),
    in_flight: agent.inFlight,
    healthy: agent.isHealthy,
    local: agent.local,
  };
}
