/** The agents of a tunnel as they are now. Each has a connection to every object of the tunnel. */
import type { AgentState } from "../../rpc.ts";
import type { Agents } from "../agents/agents.ts";
import type { Shards } from "./shards.ts";

interface AgentStateSource {
  listAgents(): Promise<AgentState[]>;
}

/**
 * The oldest connection first. On the first object, requests in flight at the others are included.
 * @throws when another object of the tunnel can't be reached.
 */
export async function listAgentStates(
  agents: Pick<Agents, "listServing">,
  shards: Pick<Shards<AgentStateSource>, "forOthers">,
): Promise<AgentState[]> {
  const others = await shards.forOthers((it) => it.listAgents());
  return agents.listServing(Date.now()).map(({ attachment, isHealthy, pool, streamCount }) => {
    const { agentId, remoteIp, connectedAtMs, hello } = attachment;
    const instance = pool?.instance ?? null;
    const elsewhere = others.flat().filter((it) => it.instance === instance);
    const inFlight = elsewhere.reduce((sum, it) => sum + it.inFlight, streamCount);
    const local = hello?.local ?? null;
    return { agentId, remoteIp, connectedAtMs, instance, inFlight, isHealthy, local };
  });
}
