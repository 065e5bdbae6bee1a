/** Which connections belong to one agent, or to the agents of one token. */
import type { AgentAttachment } from "./admission.ts";

/** An agent over its connections to all objects of a tunnel. */
export interface AgentIdentity {
  tokenNonce: string;
  /** Of an agent in a pool. null: it serves alone. */
  instance: string | null;
}

export type AgentFilter = (agent: AgentAttachment) => boolean;

export function identify({ tokenNonce, hello }: AgentAttachment): AgentIdentity {
  return { tokenNonce, instance: hello?.pool?.instance ?? null };
}

export function isAgent({ tokenNonce, instance }: AgentIdentity): AgentFilter {
  return (agent) => {
    const identity = identify(agent);
    return identity.tokenNonce === tokenNonce && identity.instance === instance;
  };
}

export function hasToken(tokenNonce: string): AgentFilter {
  return (agent) => agent.tokenNonce === tokenNonce;
}

/** One connection. */
export function hasId(agentId: string): AgentFilter {
  return (agent) => agent.agentId === agentId;
}
