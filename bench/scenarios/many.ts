/**
 * Thousands of idle tunnels (`--tunnels`): what admitting one costs, the memory of each, whether all of them answer a request,
 * and how soon they are connected again after `kill -9` of workerd.
 */
import { request as httpRequest } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { ServerOptions } from "../../test/harness/server/server.ts";
import { callApi, type ApiCaller } from "../api.ts";
import { AGENTS_PER_ADDRESS, startAgents } from "../many/agents-group.ts";
import { CONCURRENCY, runConcurrently } from "../many/concurrency.ts";
import { getResidentMiB, listServerProcesses, startCpuMeter } from "../processes.ts";
import type { Row } from "../report.ts";
import type { BenchOptions } from "../settings.ts";
import { median, round } from "../statistics.ts";
import type { BenchStack } from "../stack.ts";

/** Each request wakes two objects, whose files stay open for ten seconds: a higher rate exceeds the limit of open files. */
const VISITS_PER_SECOND = 100;
/** An idle object is evicted after ten seconds. */
const EVICTION_MS = 15_000;
const LISTED_POLL_MS = 100;

/** What the system allows a process without asking for more. */
const USUAL_DESCRIPTORS = 20_000;
/**
 * What workerd has open for ten seconds after a tunnel's agent has connected: the connection and the files of the tunnel's
 * object. After `kill -9` all agents connect in that time.
 */
const DESCRIPTORS_PER_TUNNEL = 4;
/** Room for visitors, and for all calls of the API. */
const OTHER_CONNECTIONS = 500;
const OTHER_DESCRIPTORS = 2_000;

/** All agents come from one address. More than 4,500 tunnels need a higher `ulimit -Hn`. */
export function buildOptionsForMany(tunnels: number): ServerOptions {
  const connections = String(tunnels + OTHER_CONNECTIONS);
  const needed = DESCRIPTORS_PER_TUNNEL * tunnels + OTHER_DESCRIPTORS;
  const addresses = Array.from(
    { length: Math.ceil(tunnels / AGENTS_PER_ADDRESS) },
    (_, i) => `127.0.0.${i + 1}`,
  );
  return {
    ...(needed > USUAL_DESCRIPTORS && { descriptors: needed }),
    env: {
      MAX_CONNECTIONS: connections,
      MAX_CONNECTIONS_PER_ADDRESS: connections,
      API_HOSTS: [...addresses, "localhost"].join(","),
      ...(addresses.length > 1 && { HOST: "0.0.0.0" }),
    },
  };
}

export async function benchMany(stack: BenchStack, { tunnels }: BenchOptions): Promise<Row[]> {
  const processes = await listServerProcesses(stack.server);
  const readCpuMs = startCpuMeter(processes.map(({ pid }) => pid));
  const residentBefore = getResidentMiB(stack.workerdPid);
  const startedAt = performance.now();
  const agents = await startAgents(stack, tunnels);
  const seconds = (performance.now() - startedAt) / 1000;
  const listedSeconds = await waitUntilListed(agents.owners, tunnels);
  const cpuMs = readCpuMs();
  await sleep(EVICTION_MS);
  const resident = getResidentMiB(stack.workerdPid) - residentBefore;
  const residentAgents = agents.getResidentMiB();
  let answered = 0;
  await runConcurrently(tunnels, async (i) => {
    const paced = sleep((CONCURRENCY * 1000) / VISITS_PER_SECOND);
    if ((await visit(stack, agents.hosts[i]!)) === 200) answered += 1;
    await paced;
  });
  const reconnections = agents.waitForReconnections();
  const killedAtMs = Date.now();
  process.kill(stack.workerdPid, "SIGKILL");
  const reconnectedMs = (await reconnections).map((ms) => ms - killedAtMs);
  await agents.stop();
  const perTunnel = (mib: number): string => `${Math.round((mib * 1024) / tunnels)} KiB`;
  return [
    {
      group: "many tunnels",
      tunnels,
      "connected in s": round(seconds, 1),
      "admitted/s": round(tunnels / seconds),
      "listed after s": round(listedSeconds, 2),
      "workerd each": perTunnel(resident),
      "agent each": perTunnel(residentAgents),
      "answered when visited": answered,
    },
    {
      group: "agents that reconnect after kill -9 of workerd",
      "median s": round(median(reconnectedMs) / 1000, 1),
      "all s": round(Math.max(...reconnectedMs) / 1000, 1),
    },
    ...processes.map(({ name }, i) => ({
      group: "CPU of an admission",
      process: name,
      "ms each": round(cpuMs[i]! / tunnels, 2),
    })),
  ];
}

/** @returns seconds until the metrics of the organizations count all of their agents. */
async function waitUntilListed(owners: readonly ApiCaller[], tunnels: number): Promise<number> {
  const startedAt = performance.now();
  for (;;) {
    const pages = await Promise.all(
      owners.map((owner) => callApi<string>(owner, "GET", "/metrics/prometheus")),
    );
    const agents = pages.map((page) =>
      Number(/^underpass_agents_connected (\d+)/m.exec(page)?.[1]),
    );
    const listed = agents.reduce((sum, count) => sum + count, 0);
    if (listed >= tunnels) return (performance.now() - startedAt) / 1000;
    await sleep(LISTED_POLL_MS);
  }
}

function visit(stack: BenchStack, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: "127.0.0.1", port: stack.server.port, headers: { host } });
    request.on("response", (answer) => {
      answer.resume();
      answer.on("end", () => resolve(answer.statusCode ?? 0));
    });
    request.on("error", reject);
    request.end();
  });
}
