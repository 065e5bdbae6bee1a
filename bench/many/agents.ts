/**
 * A process with many agents: it connects as many as it is told to, sends their hosts, says when all of them have reconnected,
 * and runs until it is killed.
 */
import { expose } from "../../agent/expose.ts";
import { runConcurrently } from "./concurrency.ts";

export interface AgentsPlan {
  server: string;
  /** A capability token in base64. */
  token: string;
  /** `host:port` of the local server. */
  origin: string;
  agents: number;
}

export interface ConnectedAgents {
  /** Hosts and ports of the tunnels. */
  hosts: string[];
}

/** Sent once when each agent has lost its connection and has another one. */
export interface ReconnectedAgents {
  /** When each agent had its new connection, in milliseconds since 1970. */
  atMs: number[];
}

process.once("message", (message) => {
  const { token, agents, ...options } = message as AgentsPlan;
  const hosts: string[] = [];
  const atMs: number[] = [];
  void runConcurrently(agents, async () => {
    const { url, events } = await expose({ ...options, token: Buffer.from(token, "base64") });
    hosts.push(new URL(url).host);
    events.once("reconnected", () => {
      atMs.push(Date.now());
      if (atMs.length === agents) process.send?.({ atMs } satisfies ReconnectedAgents);
    });
  }).then(() => process.send?.({ hosts } satisfies ConnectedAgents));
});
