/** The cost of captures: requests per second with each capture mode, relative to a tunnel without captures. */
import { once } from "node:events";
import { WebSocket } from "ws";
import { callApi } from "../api.ts";
import { compareVariants, measureLoad, type MeasuredLoad } from "../measured-load.ts";
import { CONNECTIONS, type BenchOptions } from "../settings.ts";
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

export async function benchCaptures(stack: BenchStack, { seconds }: BenchOptions): Promise<Row[]> {
  const { server, host, workerdPid } = stack;
  const plan = { port: server.port, host, path: "/", connections: CONNECTIONS, seconds };
  const rounds = new Map(CAPTURE_MODES.map(({ name }) => [name, [] as MeasuredLoad[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const { name, settings, isWatched } of CAPTURE_MODES) {
      await setCapturing(stack, settings);
      const watcher = isWatched ? await watch(stack) : undefined;
      rounds.get(name)!.push(await measureLoad(plan, [workerdPid]));
      watcher?.terminate();
    }
  }
  return compareVariants("captures", rounds);
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
