/**
 * Requests per second, latency and CPU time of the whole path, compared with a bare object call, a bare tunnel, the origin and
 * other tunnels: localtunnel, and frp if it has been built (`bench/peers/build.ts`).
 */
import { startHop } from "../hop/start.ts";
import { startFrp } from "../peers/frp.ts";
import { startLocaltunnel } from "../peers/localtunnel.ts";
import type { Peer } from "../peers/peer.ts";
import { measureLoad, type MeasuredLoad } from "../measured-load.ts";
import { listServerProcesses } from "../processes.ts";
import type { Row } from "../report.ts";
import { ROUNDS, type BenchOptions } from "../settings.ts";
import type { BenchStack } from "../stack.ts";
import { formatPercent, median, medianBy, round } from "../statistics.ts";

const CONNECTIONS = [1, 32, 128, 256];
const OWN = "underpass";
const BARE_HOP = "bare object hop";
const FRONTED_HOP = "object hop behind a front proxy";
const BARE_TUNNEL = "bare tunnel behind a front proxy";
const DIRECT = "origin, direct";

type Path = Omit<Peer, "stop">;

export async function benchRequests(stack: BenchStack, { seconds }: BenchOptions): Promise<Row[]> {
  const hop = await startHop();
  const front = await hop.startFrontProxy();
  const bareAgent = await hop.startBareAgent(front.port, stack.origin.port);
  const localtunnel = await startLocaltunnel(stack.origin.port);
  const frp = await startFrp(stack.origin.port);
  const workerd = { name: "workerd", pid: hop.pid };
  const fronted = [workerd, { name: "front-proxy", pid: front.pid }];
  const server = (await listServerProcesses(stack.server)).filter(({ name }) => name !== "gateway");
  const own = [...server, { name: "agent", pid: stack.agent.pid ?? 0 }];
  const paths: Path[] = [
    { name: BARE_HOP, port: hop.port, host: "hop", processes: [workerd] },
    { name: FRONTED_HOP, port: front.port, host: "hop", processes: fronted },
    {
      name: BARE_TUNNEL,
      port: front.port,
      host: "tunnel",
      processes: [...fronted, { name: "agent", pid: bareAgent.pid }],
    },
    { name: OWN, port: stack.server.port, host: stack.host, processes: own },
    { name: DIRECT, port: stack.origin.port, host: "origin", processes: [] },
    localtunnel,
    ...(frp === null ? [] : [frp]),
  ];
  const compared = [BARE_HOP, FRONTED_HOP, BARE_TUNNEL, ...(frp === null ? [] : [frp.name])];
  const rows: Row[] = [];
  for (const connections of CONNECTIONS) {
    const rounds: Map<string, MeasuredLoad>[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      const measured = new Map<string, MeasuredLoad>();
      for (const path of paths) measured.set(path.name, await measure(path, connections, seconds));
      rounds.push(measured);
    }
    rows.push(...paths.map((path) => describePath(path, connections, rounds)));
    rows.push(...compared.map((name) => compare(name, connections, rounds)));
  }
  await front.stop();
  await bareAgent.stop();
  await hop.stop();
  await localtunnel.stop();
  await frp?.stop();
  return rows;
}

function measure(path: Path, connections: number, seconds: number): Promise<MeasuredLoad> {
  const { port, host, processes } = path;
  const plan = { port, host, path: "/", connections, seconds };
  const pids = processes.map(({ pid }) => pid);
  return measureLoad(plan, pids);
}

function sumCpuMicros({ cpuMicros }: MeasuredLoad): number {
  return cpuMicros.reduce((sum, micros) => sum + micros, 0);
}

/** The round with the median of requests a second. */
function describePath(
  { name, processes }: Path,
  connections: number,
  rounds: Map<string, MeasuredLoad>[],
): Row {
  const measured = medianBy(
    rounds.map((each) => each.get(name)!),
    ({ requestsPerSecond }) => requestsPerSecond,
  );
  return {
    group: "requests",
    connections,
    path: name,
    "req/s": Math.round(measured.requestsPerSecond),
    "p50 ms": round(measured.p50, 2),
    "p90 ms": round(measured.p90, 2),
    "p99 ms": round(measured.p99, 2),
    errors: measured.errors,
    "CPU µs/req": Math.round(sumCpuMicros(measured)),
    "of which": processes
      .map((process, i) => `${process.name} ${Math.round(measured.cpuMicros[i]!)}`)
      .join(", "),
  };
}

/** Medians of the ratios in each round, because other work on the machine makes all paths of a round slower. */
function compare(other: string, connections: number, rounds: Map<string, MeasuredLoad>[]): Row {
  const compareRounds = (
    ratio: (own: MeasuredLoad, other: MeasuredLoad, direct: MeasuredLoad) => number,
  ) => median(rounds.map((each) => ratio(each.get(OWN)!, each.get(other)!, each.get(DIRECT)!)));
  return {
    group: "requests, ratios",
    connections,
    path: `underpass to ${other}`,
    "req/s": formatPercent(compareRounds((a, b) => a.requestsPerSecond / b.requestsPerSecond)),
    "p50 ms over direct": `${round(
      compareRounds((own, _, direct) => own.p50 - direct.p50),
      2,
    )} and ${round(
      compareRounds((_, b, direct) => b.p50 - direct.p50),
      2,
    )}`,
    "p99 ms": `${round(
      compareRounds((a, b) => a.p99 / b.p99),
      2,
    )} times`,
    "CPU µs/req": formatPercent(compareRounds((a, b) => sumCpuMicros(a) / sumCpuMicros(b))),
  };
}
