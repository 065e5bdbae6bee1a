/**
 * The slowest requests of a tunnel in an open loop, compared with a bare object call and the local server: 1,000 requests a second,
 * captured, while 100 other tunnels are idle. CPU and memory are those of each process.
 */
import { expose } from "../../agent/expose.ts";
import { mintToken } from "../api.ts";
import { startHop } from "../hop/start.ts";
import { runConcurrently } from "../many/concurrency.ts";
import { measureLoad } from "../measured-load.ts";
import { getProcessName, getResidentMiB, listChildren } from "../processes.ts";
import type { LoadResult } from "../load.ts";
import type { Row } from "../report.ts";
import { CONNECTIONS, ROUNDS, type BenchOptions } from "../settings.ts";
import type { BenchStack } from "../stack.ts";
import { medianBy, round } from "../statistics.ts";

const REQUESTS_PER_SECOND = 1_000;
const IDLE_TUNNELS = 100;

interface Path {
  name: string;
  port: number;
  host: string;
  pids: Record<string, number>;
}

interface Round extends LoadResult {
  /** CPU of a request in µs and resident memory in MiB, by process. */
  processes: string;
}

export async function benchTails(stack: BenchStack, { seconds }: BenchOptions): Promise<Row[]> {
  const hop = await startHop();
  const token = await mintToken(stack, { tunnelQuota: IDLE_TUNNELS });
  const origin = `127.0.0.1:${stack.origin.port}`;
  const ending = new AbortController();
  await runConcurrently(IDLE_TUNNELS, async () => {
    await expose({ origin, server: stack.server.url, token, signal: ending.signal });
  });
  const server = await stack.server.getPid("server");
  const children = Object.fromEntries(
    listChildren(server).map((pid) => [getProcessName(pid), pid]),
  );
  const own = { ...children, agent: stack.agent.pid ?? 0 };
  const paths: Path[] = [
    { name: "bare object hop", port: hop.port, host: "hop", pids: { workerd: hop.pid } },
    { name: "underpass", port: stack.server.port, host: stack.host, pids: own },
    { name: "origin, direct", port: stack.origin.port, host: "origin", pids: {} },
  ];
  const rounds = new Map(paths.map(({ name }) => [name, [] as Round[]]));
  for (let i = 0; i < ROUNDS; i++)
    for (const path of paths) rounds.get(path.name)!.push(await measure(path, seconds));
  // Otherwise they would reconnect during the next benchmark.
  ending.abort();
  await hop.stop();
  return Array.from(rounds, ([name, measured]) => {
    const { requestsPerSecond, p50, p99, p999, max, errors, processes } = medianBy(
      measured,
      (each) => each.p999,
    );
    return {
      group: `tails, open loop of ${REQUESTS_PER_SECOND} requests a second`,
      path: name,
      "req/s": Math.round(requestsPerSecond),
      "p50 ms": round(p50, 2),
      "p99 ms": round(p99, 1),
      "p99.9 ms": round(p999, 1),
      "max ms": round(max, 1),
      errors,
      "µs/req and MiB": processes,
    };
  });
}

async function measure({ port, host, pids }: Path, seconds: number): Promise<Round> {
  const plan = { port, host, path: "/", connections: CONNECTIONS, seconds };
  const paced = { ...plan, requestsPerSecond: REQUESTS_PER_SECOND };
  const result = await measureLoad(paced, Object.values(pids));
  const processes = Object.entries(pids).map(([name, pid], i) => {
    return `${name} ${Math.round(result.cpuMicros[i]!)} ${Math.round(getResidentMiB(pid))}`;
  });
  return { ...result, processes: processes.join(", ") };
}
