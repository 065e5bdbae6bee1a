/** The management API on the embedded database: repeated authenticated requests for the list of tunnels. */
import { getCpuMs, runLoad } from "../processes.ts";
import type { Row } from "../report.ts";
import { WARM_UP_SECONDS } from "../settings.ts";
import type { BenchServer } from "../stack.ts";

const CONNECTIONS = 8;

export async function benchApi(stack: BenchServer, seconds: number): Promise<Row[]> {
  const pids = [stack.workerdPid, await stack.server.getPid("server")];
  const before = pids.map(getCpuMs);
  const result = await runLoad({
    port: stack.server.port,
    host: `127.0.0.1:${stack.server.port}`,
    path: "/tunnels",
    headers: { authorization: `Bearer ${stack.accessToken}` },
    connections: CONNECTIONS,
    seconds,
    warmUpSeconds: WARM_UP_SECONDS,
  });
  const requests = result.requestsPerSecond * (seconds + WARM_UP_SECONDS);
  const [workerd, gateway] = pids.map((pid, i) =>
    Math.round(((getCpuMs(pid) - before[i]!) * 1000) / requests),
  );
  return [
    {
      group: "API",
      path: "GET /tunnels",
      connections: CONNECTIONS,
      "req/s": Math.round(result.requestsPerSecond),
      "p50 ms": Math.round(result.p50 * 100) / 100,
      "p99 ms": Math.round(result.p99 * 100) / 100,
      errors: result.errors,
      "workerd µs/req": workerd!,
      "gateway µs/req": gateway!,
    },
  ];
}
