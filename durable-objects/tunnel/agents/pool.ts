/**
 * Several agents that serve one tunnel together. All of them have asked for it, and use the same token. A visitor's request
 * goes to the one with the fewest requests in flight, of those that can answer it.
 */
import type { CloseRefusal } from "../../../protocol/wire/close-reason.ts";
import { HEARTBEAT_INTERVAL_MS, POOL_AGENTS_MAX } from "../../../protocol/limits.ts";
import type { AgentAttachment } from "../socket-attachments.ts";
import type { AgentLink } from "./agent-link.ts";

/** An agent that has been silent for longer has missed a heartbeat: others are preferred to it. */
export const HEARTBEAT_LATE_MS = HEARTBEAT_INTERVAL_MS + 2_000;

/** The properties of an agent that its choice depends on. */
type PoolAgent = Pick<AgentLink, "isGoingAway" | "isHealthy" | "streamCount" | "lastChoice">;

/**
 * @param tried the agents that could not answer this request: they come last.
 * @param isLate whether an agent has missed a heartbeat.
 */
export function choosePoolAgent<Agent extends PoolAgent>(
  agents: readonly Agent[],
  tried: readonly Agent[],
  isLate: (agent: Agent) => boolean,
): Agent | undefined {
  const rank = (agent: Agent): number => {
    if (tried.includes(agent)) return 3;
    if (agent.isGoingAway) return 2;
    return agent.isHealthy && !isLate(agent) ? 0 : 1;
  };
  let chosen: { agent: Agent; rank: number } | undefined;
  for (const agent of agents) {
    const candidate = { agent, rank: rank(agent) };
    if (!chosen || isBetter(candidate, chosen)) chosen = candidate;
  }
  return chosen?.agent;
}

interface Ranked {
  agent: PoolAgent;
  rank: number;
}

/** Between equally busy agents, the one that has waited longer for a request is better. */
function isBetter(one: Ranked, other: Ranked): boolean {
  if (one.rank !== other.rank) return one.rank < other.rank;
  const streams = one.agent.streamCount - other.agent.streamCount;
  return streams === 0 ? one.agent.lastChoice < other.agent.lastChoice : streams < 0;
}

/** Which agents a new one replaces, or why it may not serve. */
type JoinDecision = { replaced: readonly AgentLink[] } | CloseRefusal;

/** @param serving those that serve the tunnel; either one, or a pool. */
export function decideJoin(
  { tokenNonce, hello }: AgentAttachment,
  serving: readonly AgentLink[],
): JoinDecision {
  const [first] = serving;
  if (first && first.attachment.tokenNonce !== tokenNonce)
    return { refusal: "duplicate_name", message: "another agent is serving this tunnel" };
  if (!first?.pool) return { replaced: serving };
  if (!hello?.pool) {
    const message = "a pool of agents serves this tunnel; start this agent with --pool too";
    return { refusal: "duplicate_name", message, subcode: "pool_serves" };
  }
  const { instance } = hello.pool;
  const replaced = serving.filter(({ pool }) => pool?.instance === instance);
  if (replaced.length > 0 || serving.length < POOL_AGENTS_MAX) return { replaced };
  const message = `${POOL_AGENTS_MAX} agents serve this tunnel already`;
  return { refusal: "quota_exceeded", message, subcode: "pool_full" };
}
