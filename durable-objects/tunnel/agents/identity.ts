/** Which connections belong to one agent, or to the agents of one token. */
import type { AgentAttachment } from "../socket-attachments.ts";

/** An agent over its connections to all objects of a tunnel. */
export interface AgentIdentity {
  tokenNonce: string;
  /** Identifies an agent in a pool. null: it serves alone. */
  instance: string | null;
}

/** Selects some of the connections of a tunnel's agents. */
export type AgentFilter = (agent: AgentAttachment) => boolean;

export function getIdentity({ tokenNonce, hello }: AgentAttachment): AgentIdentity {
  return { tokenNonce, instance: hello?.pool?.instance ?? null };
}

/** @returns a filter for all connections of one agent. */
export function matchAgent({ tokenNonce, instance }: AgentIdentity): AgentFilter {
  return (agent) => {
    const identity = getIdentity(agent);
    return identity.tokenNonce === tokenNonce && identity.instance === instance;
  };
}

/** @returns a filter for the connections of all agents of one capability token. */
export function matchToken(tokenNonce: string): AgentFilter {
  return (agent) => agent.tokenNonce === tokenNonce;
}

/** @returns a filter for one connection. */
export function matchId(agentId: string): AgentFilter {
  return (agent) => agent.agentId === agentId;
}
