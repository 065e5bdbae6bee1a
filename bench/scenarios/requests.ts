/**
 * Requests per second, latency and CPU time of the whole path, compared with a bare object call, the origin and other
 * tunnels: localtunnel, and frp if it has been built (`bench/peers/build.ts`).
 */
import { startHop } from "../hop/start.ts";
import { startFrp } from "../peers/frp.ts";
import { startLocaltunnel } from "../peers/localtunnel.ts";
import type { Peer } from "../peers/peer.ts";
import { getCpuMs, listServerProcesses, runLoad } from "../processes.ts";
import type { Row } from "../report.ts";
import type { BenchStack } from "../stack.ts";
import { formatPercent, round } from "../statistics.ts";

const CONNECTIONS = [1, 32, 128, 256];
const OWN = "underpass";
const BARE_HOP = "bare object hop";
const FRONTED_HOP = "object hop behind a front proxy";
const DIRECT = "origin, direct";

interface Measured {
  requestsPerSecond: number;
  p50: number;
  p99: number;
  cpuMicroseconds: number;
}

export async function benchRequests(stack: BenchStack, seconds: number): Promise<Row[]> {
  const hop = await startHop();
  const front = await hop.startFrontProxy();
  const localtunnel = await startLocaltunnel(stack.origin.port);
  const frp = await startFrp(stack.origin.port);
  const workerd = { name: "workerd", pid: hop.pid };
  const server = (await listServerProcesses(stack.server)).filter(({ name }) => name !== "gateway");
  const agent = { name: "agent", pid: stack.agent.pid ?? 0 };
  const paths: Omit<Peer, "stop">[] = [
    { name: BARE_HOP, port: hop.port, host: "hop", processes: [workerd] },
    {
      name: FRONTED_HOP,
      port: front.port,
      host: "hop",
      processes: [workerd, { name: "front-proxy", pid: front.pid }],
    },
    { name: OWN, port: stack.server.port, host: stack.host, processes: [...server, agent] },
    { name: DIRECT, port: stack.origin.port, host: "origin", processes: [] },
    localtunnel,
    ...(frp === null ? [] : [frp]),
  ];
  const rows: Row[] = [];
  for (const connections of CONNECTIONS) {
    const measured = new Map<string, Measured>();
    for (const { name, port, host, processes } of paths) {
      const plan = { port, host, path: "/", connections, seconds, warmUpSeconds: 1 };
      const before = processes.map(({ pid }) => getCpuMs(pid));
      const result = await runLoad(plan);
      const requests = result.requestsPerSecond * (seconds + 1);
      const cpu = processes.map(({ pid }, i) => ((getCpuMs(pid) - before[i]!) * 1000) / requests);
      const cpuMicroseconds = cpu.reduce((sum, µs) => sum + µs, 0);
      measured.set(name, { ...result, cpuMicroseconds });
      rows.push({
        group: "requests",
        connections,
        path: name,
        "req/s": Math.round(result.requestsPerSecond),
        "p50 ms": round(result.p50, 2),
        "p90 ms": round(result.p90, 2),
        "p99 ms": round(result.p99, 2),
        errors: result.errors,
        "CPU µs/req": Math.round(cpuMicroseconds),
        "of which": processes.map(({ name }, i) => `${name} ${Math.round(cpu[i]!)}`).join(", "),
      });
    }
    const own = measured.get(OWN)!;
    const direct = measured.get(DIRECT)!;
    for (const name of [BARE_HOP, FRONTED_HOP, ...(frp === null ? [] : [frp.name])]) {
      const other = measured.get(name)!;
      rows.push({
        group: "requests, ratios",
        connections,
        path: `underpass to ${name}`,
        "req/s": formatPercent(own.requestsPerSecond / other.requestsPerSecond),
        "p50 ms": `+${round(own.p50 - direct.p50, 2)} over direct`,
        "p99 ms": `${round(own.p99 / other.p99, 2)} times`,
        "CPU µs/req": formatPercent(own.cpuMicroseconds / other.cpuMicroseconds),
      });
    }
  }
  await front.stop();
  await hop.stop();
  await localtunnel.stop();
  await frp?.stop();
  return rows;
}
