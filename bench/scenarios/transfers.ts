/** Throughput of large bodies through the tunnel, and the memory of both ends while one side reads slowly. */
import { request as httpRequest, type ClientRequest } from "node:http";
import { Readable } from "node:stream";
import { getCpuMs, getResidentMiB, listServerProcesses, runLoad } from "../processes.ts";
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
  const rows: Row[] = [
    await measureMemory(stack, "2 GiB download, slow reader", () => slowDownload(stack)),
    await measureMemory(stack, "2 GiB upload, slow origin", () => slowUpload(stack)),
  ];
  for (const streams of [1, 16]) {
    for (const [direction, transfer] of [
      ["download", download],
      ["upload", upload],
    ] as const) {
      const cpuBefore = processes.map(({ pid }) => getCpuMs(pid));
      const startedAt = performance.now();
      const each = Math.floor(TRANSFER_BYTES / streams);
      await Promise.all(Array.from({ length: streams }, () => transfer(stack, each)));
      const seconds = (performance.now() - startedAt) / 1000;
      const cpu = processes.map(({ pid }, i) => getCpuMs(pid) - cpuBefore[i]!);
      const perGiB = (ms: number): number => round((ms / 1000) * (2 ** 30 / TRANSFER_BYTES), 2);
      rows.push({
        group: "transfers",
        streams,
        path: direction,
        "MB/s": Math.round(TRANSFER_BYTES / MB / seconds),
        "CPU s/GiB": perGiB(cpu.reduce((sum, ms) => sum + ms, 0)),
        ...Object.fromEntries(processes.map(({ name }, i) => [`${name} s/GiB`, perGiB(cpu[i]!)])),
      });
    }
  }
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

function openRequest(stack: BenchStack, method: string, path: string, headers = {}): ClientRequest {
  return httpRequest({
    host: "127.0.0.1",
    port: stack.server.port,
    agent: false,
    method,
    path,
    headers: { host: stack.host, ...headers },
  });
}

function download(stack: BenchStack, bytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = openRequest(stack, "GET", `/bytes?n=${bytes}`);
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

function upload(stack: BenchStack, bytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = openRequest(stack, "POST", "/", { "content-length": bytes });
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

function slowDownload(stack: BenchStack): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = openRequest(stack, "GET", `/bytes?n=${SLOW_TRANSFER_BYTES}`);
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
function slowUpload(stack: BenchStack): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = openRequest(stack, "POST", "/slow", { "content-length": SLOW_TRANSFER_BYTES });
    request.on("response", (answer) => {
      answer.resume();
      answer.on("end", resolve);
    });
    request.on("error", reject);
    Readable.from(chunks(SLOW_TRANSFER_BYTES)).pipe(request);
  });
}
