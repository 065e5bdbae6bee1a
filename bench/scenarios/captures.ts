/** What it costs to keep every request: requests a second as parts of those of a tunnel that keeps none. */
import { once } from "node:events";
import { WebSocket } from "ws";
import { getCpuMs, runLoad } from "../processes.ts";
import type { Row } from "../report.ts";
import type { Stack } from "../stack.ts";

const CONNECTIONS = 32;
/** Each is measured this often, in turns, so that what else the machine does falls on all of them. */
const ROUNDS = 5;
const WARM_UP_SECONDS = 1;

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

export async function benchCaptures(stack: Stack, seconds: number): Promise<Row[]> {
  const results = CAPTURE_MODES.map(({ name }) => ({ name, rounds: [] as Measurement[] }));
  for (let round = 0; round < ROUNDS; round++) {
    for (const [i, { settings, isWatched }] of CAPTURE_MODES.entries()) {
      await setCapturing(stack, settings);
      const watcher = isWatched ? await watch(stack) : undefined;
      results[i]!.rounds.push(await measure(stack, seconds));
      watcher?.terminate();
    }
  }
  const medians = results.map(({ name, rounds }) => ({ name, ...getMedian(rounds) }));
  const [nothing] = medians;
  return medians.map(({ name, requestsPerSecond, p50, p99, errors, cpuPerRequest }) => ({
    group: "captures",
    kept: name,
    connections: CONNECTIONS,
    "req/s": Math.round(requestsPerSecond),
    "to nothing": `${Math.round((100 * requestsPerSecond) / nothing!.requestsPerSecond)} %`,
    "p50 ms": Math.round(p50 * 100) / 100,
    "p99 ms": Math.round(p99 * 100) / 100,
    errors,
    "server µs/req": Math.round(cpuPerRequest),
  }));
}

async function measure({ server, host, workerdPid }: Stack, seconds: number): Promise<Measurement> {
  const before = getCpuMs(workerdPid);
  const plan = { port: server.port, host, path: "/", connections: CONNECTIONS };
  const result = await runLoad({ ...plan, seconds, warmUpSeconds: WARM_UP_SECONDS });
  const requests = result.requestsPerSecond * (seconds + WARM_UP_SECONDS);
  return { ...result, cpuPerRequest: ((getCpuMs(workerdPid) - before) * 1000) / requests };
}

function getMedian(rounds: Measurement[]): Measurement {
  const sorted = rounds.toSorted((a, b) => a.requestsPerSecond - b.requestsPerSecond);
  return sorted[Math.floor(sorted.length / 2)]!;
}

async function setCapturing(stack: Stack, settings: object): Promise<void> {
  const { server, accessToken, tunnelId } = stack;
  const answer = await fetch(`${server.url}/tunnels/${tunnelId}/inspector`, {
    method: "PUT",
    headers: { authorization: `Bearer ${accessToken}`, "content-type": "application/json" },
    body: JSON.stringify(settings),
  });
  if (!answer.ok) throw new Error(`inspector answered ${answer.status}: ${await answer.text()}`);
}

/** Somebody who keeps up. */
async function watch({ server, accessToken }: Stack): Promise<WebSocket> {
  const protocols = ["underpass.inspector", `bearer.${accessToken}`];
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/inspector/ws?batch=1`, protocols);
  socket.on("message", (data: Buffer) => {
    const text = data.toString();
    if (text.startsWith('{"type":"sync"')) socket.send(text);
  });
  await once(socket, "open");
  return socket;
}
