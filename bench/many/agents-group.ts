/** Agents in processes of their own, as many as are asked for: one process for each organization. */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { mintToken, type ApiCaller } from "../api.ts";
import { createOrganizations } from "../organization/organizations.ts";
import { ask, BENCH, getResidentMiB, stopChild } from "../processes.ts";
import type { BenchStack } from "../stack.ts";
import type { AgentsPlan, ConnectedAgents, ReconnectedAgents } from "./agents.ts";

/** An organization may have 2,000 tunnels, and `ORGANIZATION_MAXIMA` counts those of the stack too. */
const AGENTS_PER_PROCESS = 1_900;
/** The kernel has some 28,000 client ports for each address of a server. */
export const AGENTS_PER_ADDRESS = 25_000;

interface AgentsGroup {
  /** Hosts and ports of all tunnels. */
  hosts: string[];
  /** Callers with access tokens of the organizations. */
  owners: ApiCaller[];
  /** @returns when each agent has reconnected, in milliseconds since 1970. Call it before they lose their connections. */
  waitForReconnections(): Promise<number[]>;
  getResidentMiB(): number;
  stop(): Promise<void>;
}

/** Starts this many agents. Resolves when visitors can use all of their tunnels. */
export async function startAgents(stack: BenchStack, count: number): Promise<AgentsGroup> {
  const owners = await createOrganizations(stack, Math.ceil(count / AGENTS_PER_PROCESS));
  const processes: ChildProcess[] = [];
  const connected = owners.map(async (owner, i): Promise<ConnectedAgents> => {
    const agents = Math.min(AGENTS_PER_PROCESS, count - i * AGENTS_PER_PROCESS);
    const token = await mintToken(owner, { tunnelQuota: agents });
    const address = 1 + Math.floor((i * AGENTS_PER_PROCESS) / AGENTS_PER_ADDRESS);
    const child = fork(join(BENCH, "many/agents.ts"));
    processes.push(child);
    return ask<AgentsPlan, ConnectedAgents>(child, {
      server: `http://127.0.0.${address}:${stack.server.port}`,
      token: token.toString("base64"),
      origin: `127.0.0.1:${stack.origin.port}`,
      agents,
    });
  });
  const hosts = (await Promise.all(connected)).flatMap((agents) => agents.hosts);
  return {
    hosts,
    owners,
    async waitForReconnections() {
      const groups = processes.map((child) => once(child, "message"));
      const messages = (await Promise.all(groups)) as [ReconnectedAgents][];
      return messages.flatMap(([{ atMs }]) => atMs);
    },
    getResidentMiB: () => processes.reduce((sum, { pid }) => sum + getResidentMiB(pid ?? 0), 0),
    async stop() {
      await Promise.all(processes.map((child) => stopChild(child)));
    },
  };
}
