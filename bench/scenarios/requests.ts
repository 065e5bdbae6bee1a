/** Requests per second and latency of the whole path, compared with a bare object call, the origin and localtunnel. */
import { startHop } from "../hop/start.ts";
import { startLocaltunnel } from "../localtunnel.ts";
import { getCpuMs, runLoad } from "../processes.ts";
import type { Row } from "../report.ts";
import type { BenchStack } from "../stack.ts";
import { formatPercent, round } from "../statistics.ts";

const CONNECTIONS = [1, 32, 128, 256];

export async function benchRequests(stack: BenchStack, seconds: number): Promise<Row[]> {
  const hop = await startHop();
  const localtunnel = await startLocaltunnel(stack.origin.port);
  const paths = [
    { name: "bare object hop", port: hop.port, host: "hop", pid: hop.pid },
    { name: "underpass", port: stack.server.port, host: stack.host, pid: stack.workerdPid },
    { name: "origin, direct", port: stack.origin.port, host: "origin", pid: stack.origin.pid },
    { name: "localtunnel", port: localtunnel.port, host: localtunnel.host, pid: localtunnel.pid },
  ];
  const rows: Row[] = [];
  for (const connections of CONNECTIONS) {
    const measured = new Map<string, { requestsPerSecond: number; p50: number; p99: number }>();
    for (const { name, port, host, pid } of paths) {
      const plan = { port, host, path: "/", connections, seconds, warmUpSeconds: 1 };
      const before = getCpuMs(pid);
      const result = await runLoad(plan);
      const cpuPerRequest =
        ((getCpuMs(pid) - before) * 1000) / (result.requestsPerSecond * (seconds + 1));
      measured.set(name, result);
      rows.push({
        group: "requests",
        connections,
        path: name,
        "req/s": Math.round(result.requestsPerSecond),
        "p50 ms": round(result.p50, 2),
        "p90 ms": round(result.p90, 2),
        "p99 ms": round(result.p99, 2),
        errors: result.errors,
        "server µs/req": Math.round(cpuPerRequest),
      });
    }
    const own = measured.get("underpass")!;
    const bare = measured.get("bare object hop")!;
    const direct = measured.get("origin, direct")!;
    rows.push({
      group: "requests, ratios",
      connections,
      path: "underpass to bare hop",
      "req/s": formatPercent(own.requestsPerSecond / bare.requestsPerSecond),
      "p50 ms": `+${round(own.p50 - direct.p50, 2)} over direct`,
      "p99 ms": `${round(own.p99 / bare.p99, 2)} times`,
    });
  }
  await hop.stop();
  await localtunnel.stop();
  return rows;
}
