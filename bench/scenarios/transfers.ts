/**
 * Throughput of large bodies through the tunnel, and the memory of both ends while one side reads slowly. Other tunnels that
 * have been built (`bench/peers/build.ts`) are measured in the same run: rathole forwards bytes, frp reads HTTP.
 */
import { request as httpRequest, type ClientRequest } from "node:http";
import { Readable } from "node:stream";
import { getResidentMiB, listServerProcesses, runLoad, startCpuMeter } from "../processes.ts";
import { startFrp } from "../peers/frp.ts";
import type { Peer } from "../peers/peer.ts";
import { startRathole } from "../peers/rathole.ts";
import type { Row } from "../report.ts";
import { CHUNK_BYTES } from "../settings.ts";
import { round } from "../statistics.ts";
import type { BenchStack } from "../stack.ts";

const MB = 1_000_000;
const TRANSFER_BYTES = 600 * MB;
const SLOW_TRANSFER_BYTES = 2 * 2 ** 30;
const CHUNK = Buffer.alloc(CHUNK_BYTES, "u");
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
    await measureMemory(stack, "2 GiB download, slow reader", () => slowDownload(own)),
    await measureMemory(stack, "2 GiB upload, slow origin", () => slowUpload(own)),
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
          return Promise.all(Array.from({ length: streams }, () => transfer(path, each)));
        };
        rows.push({
          group: "transfers",
          streams,
          direction,
          ...(await measure(path, transferAll)),
        });
      }
    }
  }
  for (const peer of peers) await peer.stop();
  return rows;
}

/** Throughput, and the CPU time of each process for a GiB. */
async function measure(
  { name, processes }: Omit<Peer, "stop">,
  transferAll: () => Promise<unknown>,
) {
  const readCpuMs = startCpuMeter(processes.map(({ pid }) => pid));
  const startedAt = performance.now();
  await transferAll();
  const seconds = (performance.now() - startedAt) / 1000;
  const cpu = readCpuMs();
  const perGiB = (ms: number): number => round((ms / 1000) * (2 ** 30 / TRANSFER_BYTES), 2);
  return {
    path: name,
    "MB/s": Math.round(TRANSFER_BYTES / MB / seconds),
    "CPU s/GiB": perGiB(cpu.reduce((sum, ms) => sum + ms, 0)),
    "of which": processes.map(({ name }, i) => `${name} ${perGiB(cpu[i]!)}`).join(", "),
  };
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

/** Where visitors connect, and the host that they ask for. */
type Target = Pick<Peer, "port" | "host">;

function openRequest(
  { port, host }: Target,
  method: string,
  path: string,
  headers = {},
): ClientRequest {
  return httpRequest({
    host: "127.0.0.1",
    port,
    agent: false,
    method,
    path,
    headers: { host, ...headers },
  });
}

function download(target: Target, bytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = openRequest(target, "GET", `/bytes?n=${bytes}`);
    request.on("response", (answer) => {
      let received = 0;
      answer.on("data", (chunk: Buffer) => (received += chunk.length));
      answer.on("end", () =>
        received === bytes ? resolve() : reject(new Error(`${received} bytes`)),
      );
      answer.on("error", reject);
    });
    request.on("error", reject);
    request.end();
  });
}

function upload(target: Target, bytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = openRequest(target, "POST", "/", { "content-length": bytes });
    request.on("response", (answer) => {
      answer.resume();
      answer.on("end", resolve);
    });
    request.on("error", reject);
    Readable.from(chunks(bytes)).pipe(request);
  });
}

function* chunks(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= CHUNK.length) {
    yield left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK;
  }
}

function slowDownload(target: Target): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = openRequest(target, "GET", `/bytes?n=${SLOW_TRANSFER_BYTES}`);
    request.on("response", (answer) => {
      let sinceRest = 0;
      answer.on("data", (chunk: Buffer) => {
        sinceRest += chunk.length;
        if (sinceRest < SLOW_READ_BYTES) return;
        sinceRest = 0;
        answer.pause();
        setTimeout(() => answer.resume(), SLOW_REST_MS);
      });
      answer.on("end", resolve);
      answer.on("error", reject);
    });
    request.on("error", reject);
    request.end();
  });
}

/** The origin reads request bodies for this path slowly. */
function slowUpload(target: Target): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = openRequest(target, "POST", "/slow", { "content-length": SLOW_TRANSFER_BYTES });
    request.on("response", (answer) => {
      answer.resume();
      answer.on("end", resolve);
    });
    request.on("error", reject);
    Readable.from(chunks(SLOW_TRANSFER_BYTES)).pipe(request);
  });
}
