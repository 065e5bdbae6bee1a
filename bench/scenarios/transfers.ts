/**
 * Throughput of large bodies through the tunnel, and the memory of both ends while one side reads slowly. Other tunnels that
 * have been built (`bench/peers/build.ts`) are measured in the same run: rathole forwards bytes, frp reads HTTP.
 */
import { once } from "node:events";
import { download, MB, measureTransfer, upload, visitByHttp1, type Visit } from "../bodies.ts";
import { getResidentMiB, listServerProcesses, runLoad } from "../processes.ts";
import { startFrp } from "../peers/frp.ts";
import { startRathole } from "../peers/rathole.ts";
import type { Row } from "../report.ts";
import type { BenchStack } from "../stack.ts";

const TRANSFER_BYTES = 600 * MB;
const SLOW_TRANSFER_BYTES = 2 * 2 ** 30;
/** A slow reader pauses this long after each `SLOW_READ_BYTES`: at most 100 MB per second. */
const SLOW_REST_MS = 20;
const SLOW_READ_BYTES = 2 * MB;

export async function benchTransfers(stack: BenchStack): Promise<Row[]> {
  // Memory first: the server has served small requests, and nothing else has made it grow.
  const { port } = stack.server;
  const warmUp = { port, host: stack.host, path: "/", connections: 32, seconds: 3 };
  await runLoad({ ...warmUp, warmUpSeconds: 0 });
  const processes = [
    ...(await listServerProcesses(stack.server)).filter(({ name }) => name !== "gateway"),
    { name: "agent", pid: stack.agent.pid ?? 0 },
  ];
  const own = { name: "underpass", port, host: stack.host, processes };
  const rows: Row[] = [
    await measureMemory(stack, "2 GiB download, slow reader", () =>
      slowDownload(visitByHttp1(own)),
    ),
    await measureMemory(stack, "2 GiB upload, slow origin", () =>
      upload(visitByHttp1(own), SLOW_TRANSFER_BYTES, "/slow"),
    ),
  ];
  const rathole = await startRathole(stack.origin.port);
  const frp = await startFrp(stack.origin.port);
  const peers = [rathole, frp].filter((peer) => peer !== null);
  for (const streams of [1, 16]) {
    for (const [direction, transfer] of [
      ["download", download],
      ["upload", upload],
    ] as const) {
      for (const path of [own, ...peers]) {
        const transferAll = (): Promise<unknown> => {
          const each = Math.floor(TRANSFER_BYTES / streams);
          return Promise.all(
            Array.from({ length: streams }, () => transfer(visitByHttp1(path), each)),
          );
        };
        rows.push({
          group: "transfers",
          streams,
          direction,
          path: path.name,
          ...(await measureTransfer(path.processes, TRANSFER_BYTES, transferAll)),
        });
      }
    }
  }
  for (const peer of peers) await peer.stop();
  return rows;
}

async function measureMemory(
  stack: BenchStack,
  path: string,
  transfer: () => Promise<void>,
): Promise<Row> {
  const pids = { workerd: stack.workerdPid, agent: stack.agent.pid ?? 0 };
  const before = { workerd: getResidentMiB(pids.workerd), agent: getResidentMiB(pids.agent) };
  const most = { ...before };
  const watch = setInterval(() => {
    most.workerd = Math.max(most.workerd, getResidentMiB(pids.workerd));
    most.agent = Math.max(most.agent, getResidentMiB(pids.agent));
  }, 50);
  const startedAt = performance.now();
  await transfer();
  clearInterval(watch);
  return {
    group: "memory",
    path,
    seconds: Math.round((performance.now() - startedAt) / 1000),
    "workerd before MiB": Math.round(before.workerd),
    "workerd grew MiB": Math.round(most.workerd - before.workerd),
    "agent before MiB": Math.round(before.agent),
    "agent grew MiB": Math.round(most.agent - before.agent),
  };
}

async function slowDownload(visit: Visit): Promise<void> {
  const { body, response } = visit("GET", `/bytes?n=${SLOW_TRANSFER_BYTES}`);
  body.end();
  const answer = await response;
  let sinceRest = 0;
  answer.on("data", (chunk: Buffer) => {
    sinceRest += chunk.length;
    if (sinceRest < SLOW_READ_BYTES) return;
    sinceRest = 0;
    answer.pause();
    setTimeout(() => answer.resume(), SLOW_REST_MS);
  });
  await once(answer, "end");
}
