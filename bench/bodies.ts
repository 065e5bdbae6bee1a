/** Requests with large bodies, over HTTP/1.1 or HTTP/2, and what they cost. */
import { Agent as HttpAgent, request as requestHttp } from "node:http";
import type { ClientHttp2Session } from "node:http2";
import { Agent as HttpsAgent, request as requestHttps } from "node:https";
import { Readable, type Writable } from "node:stream";
import { startCpuMeter } from "./processes.ts";
import { CHUNK_BYTES } from "./settings.ts";
import { round } from "./statistics.ts";

export const MB = 1_000_000;
const CHUNK = Buffer.alloc(CHUNK_BYTES, "u");

/** Where visitors connect, and the host that they ask for. */
interface Target {
  port: number;
  /** Host, and port if it is in the URL. */
  host: string;
  /** The certificate of the authority, in PEM, of a target with HTTPS. */
  ca?: string;
}

/** Sends the head of a request. */
export type Visit = (
  method: string,
  path: string,
  headers?: Record<string, string | number>,
) => { body: Writable; response: Promise<Readable> };

/** @param connections kept, or by default one for each request. */
export function visitByHttp1({ port, host, ca }: Target, connections = 0): Visit {
  const pool = { keepAlive: connections > 0, maxSockets: connections || Infinity };
  const isPlain = ca === undefined;
  const agent = isPlain ? new HttpAgent(pool) : new HttpsAgent(pool);
  return (method, path, headers) => {
    const options = { host: "127.0.0.1", port, agent, method, path, headers: { host, ...headers } };
    const request = isPlain
      ? requestHttp(options)
      : requestHttps({ ...options, ca, servername: host.replace(/:\d+$/, "") });
    return {
      body: request,
      response: waitFor(request, (resolve) => request.on("response", resolve)),
    };
  };
}

/** @param open opens a session, for all requests until the server closes it. */
export function visitByHttp2(open: () => ClientHttp2Session): Visit {
  let session: ClientHttp2Session | undefined;
  return (method, path, headers) => {
    if (!session || session.closed) session = open();
    const stream = session.request({ ":method": method, ":path": path, ...headers });
    return {
      body: stream,
      response: waitFor(stream, (resolve) => stream.on("response", () => resolve(stream))),
    };
  };
}

export async function download(visit: Visit, bytes: number): Promise<void> {
  const { body, response } = visit("GET", `/bytes?n=${bytes}`);
  body.end();
  const received = await countBytes(await response);
  if (received !== bytes) throw new Error(`${received} bytes instead of ${bytes}`);
}

/** @param path of the local server, which reads bodies that are posted to `/slow` slowly. */
export async function upload(visit: Visit, bytes: number, path = "/"): Promise<void> {
  const { body, response } = visit("POST", path, { "content-length": bytes });
  Readable.from(generateChunks(bytes)).pipe(body);
  await countBytes(await response);
}

function waitFor(
  request: Writable,
  listen: (resolve: (response: Readable) => void) => void,
): Promise<Readable> {
  return new Promise((resolve, reject) => {
    listen(resolve);
    request.on("error", reject);
  });
}

/** Reads a body to its end. */
function countBytes(body: Readable): Promise<number> {
  return new Promise((resolve, reject) => {
    let received = 0;
    body.on("data", (chunk: Buffer) => (received += chunk.length));
    body.on("end", () => resolve(received));
    body.on("error", reject);
  });
}

function* generateChunks(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= CHUNK.length) {
    yield left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK;
  }
}

/** Measures the throughput, and the CPU time of each process for a GiB. */
export async function measureTransfer(
  processes: readonly { name: string; pid: number }[],
  bytes: number,
  transfer: () => Promise<unknown>,
) {
  const readCpuMs = startCpuMeter(processes.map(({ pid }) => pid));
  const startedAt = performance.now();
  await transfer();
  const seconds = (performance.now() - startedAt) / 1000;
  const cpu = readCpuMs();
  const perGiB = (ms: number): number => round((ms / 1000) * (2 ** 30 / bytes), 2);
  return {
    "MB/s": Math.round(bytes / MB / seconds),
    "CPU s/GiB": perGiB(cpu.reduce((sum, ms) => sum + ms, 0)),
    "of which": processes.map(({ name }, i) => `${name} ${perGiB(cpu[i]!)}`).join(", "),
  };
}
