/** A process with many agents: it connects as many as it is told to, sends their hosts, and runs until it is killed. */
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

process.once("message", (message) => {
  const { token, agents, ...options } = message as AgentsPlan;
  const hosts: string[] = [];
  void runConcurrently(agents, async () => {
    const { url } = await expose({ ...options, token: Buffer.from(token, "base64") });
    hosts.push(new URL(url).host);
  }).then(() => process.send?.({ hosts } satisfies ConnectedAgents));
});
