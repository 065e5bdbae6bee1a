/**
 * The management API for a large organization on the embedded database: repeated requests for the list of tunnels, every
 * other list, and logins that must not disturb visitors.
 */
import { callApi } from "../api.ts";
import { recordCaptures } from "../organization/captures.ts";
import { measureLists } from "../organization/lists.ts";
import { measureLoginStorm } from "../organization/login-storm.ts";
import { fillOrganization, type Me } from "../organization/organizations.ts";
import { getCpuMs, listServerProcesses, runLoad } from "../processes.ts";
import type { Row } from "../report.ts";
import { WARM_UP_SECONDS } from "../settings.ts";
import { round } from "../statistics.ts";
import type { BenchStack } from "../stack.ts";

const CONNECTIONS = 8;

export async function benchApi(stack: BenchStack, seconds: number): Promise<Row[]> {
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
  const before = processes.map(({ pid }) => getCpuMs(pid));
  const result = await runLoad({
    port: server.port,
    host: `127.0.0.1:${server.port}`,
    path,
    headers: { authorization: `Bearer ${accessToken}` },
    connections: CONNECTIONS,
    seconds,
    warmUpSeconds: WARM_UP_SECONDS,
  });
  const requests = result.requestsPerSecond * (seconds + WARM_UP_SECONDS);
  const cpu: Record<string, number> = {};
  for (const [i, { name, pid }] of processes.entries()) {
    cpu[`${name} µs/req`] = round(((getCpuMs(pid) - before[i]!) * 1000) / requests);
  }
  return [
    {
      group: "GET /tunnels",
      listed,
      connections: CONNECTIONS,
      "req/s": round(result.requestsPerSecond),
      "p50 ms": round(result.p50, 2),
      "p99 ms": round(result.p99, 2),
      errors: result.errors,
      ...cpu,
    },
  ];
}
