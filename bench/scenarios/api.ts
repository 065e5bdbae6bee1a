/**
 * The management API for a large organization on the embedded database: repeated requests for the list of tunnels, every
 * other list, and logins that must not disturb visitors.
 */
import { callApi } from "../api.ts";
import { measureLoad } from "../measured-load.ts";
import { recordCaptures } from "../organization/captures.ts";
import { measureLists } from "../organization/lists.ts";
import { measureLoginStorm } from "../organization/login-storm.ts";
import { fillOrganization, type Me } from "../organization/organizations.ts";
import { listServerProcesses } from "../processes.ts";
import type { Row } from "../report.ts";
import type { BenchOptions } from "../settings.ts";
import { round } from "../statistics.ts";
import type { BenchStack } from "../stack.ts";

const CONNECTIONS = 8;

export async function benchApi(stack: BenchStack, { seconds }: BenchOptions): Promise<Row[]> {
  const few = await measureTunnels(stack, seconds, "/tunnels", "its only tunnel");
  const { active_org: org } = await callApi<Me>(stack, "GET", "/auth/me");
  // In this order: a filled organization has more tunnels than one may have.
  const tunnels = await recordCaptures(stack);
  await fillOrganization(stack);
  const rows = [
    ...few,
    ...(await measureTunnels(stack, seconds, "/tunnels?limit=20", "20 of 10,000")),
    ...(await measureLists(stack, org.id)),
    ...(await measureLoginStorm(stack, seconds)),
  ];
  await Promise.all(tunnels.map((tunnel) => tunnel.close()));
  return rows;
}

async function measureTunnels(
  { server, accessToken }: BenchStack,
  seconds: number,
  path: string,
  listed: string,
): Promise<Row[]> {
  const processes = await listServerProcesses(server);
  const plan = {
    port: server.port,
    host: `127.0.0.1:${server.port}`,
    path,
    headers: { authorization: `Bearer ${accessToken}` },
    connections: CONNECTIONS,
    seconds,
  };
  const pids = processes.map(({ pid }) => pid);
  const { requestsPerSecond, p50, p99, errors, cpuMicros } = await measureLoad(plan, pids);
  const cpu = processes.map(({ name }, i) => [`${name} µs/req`, round(cpuMicros[i]!)] as const);
  return [
    {
      group: "GET /tunnels",
      listed,
      connections: CONNECTIONS,
      "req/s": round(requestsPerSecond),
      "p50 ms": round(p50, 2),
      "p99 ms": round(p99, 2),
      errors,
      ...Object.fromEntries(cpu),
    },
  ];
}
