/** Requests a second and latency of the whole path, beside a bare object hop, the origin and a peer. */
import { startHop } from "../hop/start.ts";
import { startLocaltunnel } from "../localtunnel.ts";
import { getCpuMs, runLoad } from "../processes.ts";
import type { Row } from "../report.ts";
import type { Stack } from "../stack.ts";

const CONNECTIONS = [1, 32, 128, 256];

export async function benchRequests(stack: Stack, seconds: number): Promise<Row[]> {
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
        "p50 ms": round(result.p50),
        "p90 ms": round(result.p90),
        "p99 ms": round(result.p99),
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
      "req/s": `${Math.round((100 * own.requestsPerSecond) / bare.requestsPerSecond)} %`,
      "p50 ms": `+${round(own.p50 - direct.p50)} over direct`,
      "p99 ms": `${round(own.p99 / bare.p99)} times`,
    });
  }
  await hop.stop();
  await localtunnel.stop();
  return rows;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
