/** The cost of captures: requests per second with each capture mode, relative to a tunnel without captures. */
import { once } from "node:events";
import { WebSocket } from "ws";
import { callApi } from "../api.ts";
import { getCpuMs, runLoad } from "../processes.ts";
import { CONNECTIONS, WARM_UP_SECONDS } from "../settings.ts";
import { formatPercent, medianBy, round } from "../statistics.ts";
import type { Row } from "../report.ts";
import type { BenchStack } from "../stack.ts";

/** More than other benchmarks need: the differences are small. */
const ROUNDS = 5;

const CAPTURE_MODES = [
  { name: "nothing", settings: { capture: false }, isWatched: false },
  { name: "heads", settings: { bodies: false }, isWatched: false },
  { name: "heads and bodies", settings: {}, isWatched: false },
  { name: "heads and bodies, watched", settings: {}, isWatched: true },
];

interface Measurement {
  requestsPerSecond: number;
  p50: number;
  p99: number;
  errors: number;
  cpuPerRequest: number;
}

export async function benchCaptures(stack: BenchStack, seconds: number): Promise<Row[]> {
  const results = CAPTURE_MODES.map(({ name }) => ({ name, rounds: [] as Measurement[] }));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { settings, isWatched }] of CAPTURE_MODES.entries()) {
      await setCapturing(stack, settings);
      const watcher = isWatched ? await watch(stack) : undefined;
      results[i]!.rounds.push(await measure(stack, seconds));
      watcher?.terminate();
    }
  }
  const medians = results.map(({ name, rounds }) => ({
    name,
    ...medianBy(rounds, ({ requestsPerSecond }) => requestsPerSecond),
  }));
  const [nothing] = medians;
  return medians.map(({ name, requestsPerSecond, p50, p99, errors, cpuPerRequest }) => ({
    group: "captures",
    captured: name,
    connections: CONNECTIONS,
    "req/s": Math.round(requestsPerSecond),
    "to nothing": formatPercent(requestsPerSecond / nothing!.requestsPerSecond),
    "p50 ms": round(p50, 2),
    "p99 ms": round(p99, 2),
    errors,
    "server µs/req": Math.round(cpuPerRequest),
  }));
}

async function measure(
  { server, host, workerdPid }: BenchStack,
  seconds: number,
): Promise<Measurement> {
  const before = getCpuMs(workerdPid);
  const plan = { port: server.port, host, path: "/", connections: CONNECTIONS };
  const result = await runLoad({ ...plan, seconds, warmUpSeconds: WARM_UP_SECONDS });
  const requests = result.requestsPerSecond * (seconds + WARM_UP_SECONDS);
  return { ...result, cpuPerRequest: ((getCpuMs(workerdPid) - before) * 1000) / requests };
}

async function setCapturing(stack: BenchStack, settings: object): Promise<void> {
  await callApi(stack, "PUT", `/tunnels/${stack.tunnelId}/inspector`, settings);
}

/** Opens a watcher that receives everything without delay. */
async function watch({ server, accessToken }: BenchStack): Promise<WebSocket> {
  const protocols = ["underpass.inspector", `bearer.${accessToken}`];
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/inspector/ws?batch=1`, protocols);
  socket.on("message", (data: Buffer) => {
    const text = data.toString();
    if (text.startsWith('{"type":"sync"')) socket.send(text);
  });
  await once(socket, "open");
  return socket;
}
