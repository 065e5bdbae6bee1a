/**
 * A TCP tunnel through relay and agent, compared with a direct connection to the same local server: small requests, one
 * long stream, a thousand concurrent connections, a thousand whose clients read nothing; and `underpass connect`.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import {
  startRelayProcess,
  type RelayBehindProxies,
} from "../../test/harness/networks/relay-process.ts";
import { startServer, type TestServer } from "../../test/harness/server/server.ts";
import {
  getCpuMs,
  getResidentMiB,
  ROOT,
  startCpuMeter,
  startProgram,
  stopChild,
  type Program,
} from "../processes.ts";
import { mintToken } from "../api.ts";
import { measureLoad } from "../measured-load.ts";
import type { Row } from "../report.ts";
import { CHUNK_BYTES, CONNECTIONS, ROUNDS, UNLIMITED_MBPS } from "../settings.ts";
import { formatPercent, round } from "../statistics.ts";
import { createFirstAccount } from "../stack.ts";

const SECRET = "relay-secret-of-benchmarks-and-of-nothing-else";
const STREAM_BYTES = 2e9;
const MANY = 1_000;
const SOURCE_REST_MS = 5_000;
const GiB = 2 ** 30;
/** Size of the response that a stalled visitor requests and never reads. */
const STALLED_BYTES = 64 * 2 ** 20;
const RECEIVE_BUFFER = Buffer.alloc(CHUNK_BYTES);
const CHUNK = Buffer.alloc(CHUNK_BYTES, "u");

interface Bench {
  server: TestServer;
  relay: RelayBehindProxies;
  origin: Program;
  agent: ChildProcess;
  publicPort: number;
  /** The local port of `underpass connect`. */
  connectPort: number;
  stop(): Promise<void>;
}

export async function benchRelayTcp(seconds: number): Promise<Row[]> {
  const bench = await start();
  try {
    return [
      // Memory first, before other measurements make the processes grow.
      await measureStalled(bench),
      await measureMany(bench),
      ...(await measureRequests(bench, seconds)),
      ...(await measureStream(bench)),
      ...(await measureConnect(bench)),
    ];
  } finally {
    await bench.stop();
  }
}

async function start(): Promise<Bench> {
  const server = await startServer({ env: { LOCAL_RELAY: "off", RELAY_SECRET: SECRET } });
  const relay = await startRelayProcess({
    apiUrl: server.url,
    secret: SECRET,
    address: "127.0.0.1",
  });
  const origin = await startProgram("origin.ts");
  const { accessToken } = await createFirstAccount(server);
  const tokenFile = join(server.dataDir, "tcp.token");
  await writeFile(
    tokenFile,
    await mintToken({ server, accessToken }, { bandwidthLimitMbps: UNLIMITED_MBPS }),
    { mode: 0o600 },
  );
  const common = ["--server", server.url, "--token-file", tokenFile, "--json"];
  const tcp = await startCommand(["tcp", `127.0.0.1:${origin.port}`, ...common]);
  const { tunnelId, publicPort } = tcp.ready as { tunnelId: string; publicPort: number };
  const client = await startCommand(["connect", tunnelId, "--listen", "0", ...common]);
  return {
    server,
    relay,
    origin,
    agent: tcp.child,
    publicPort,
    connectPort: (client.ready as { port: number }).port,
    async stop() {
      await stopChild(client.child);
      await stopChild(tcp.child);
      await origin.stop();
      await relay[Symbol.asyncDispose]();
      await server.stop();
    },
  };
}

/** Resolves with the `ready` event. Starts the command again until then: the API may not know the relay yet. */
async function startCommand(args: string[]): Promise<{ child: ChildProcess; ready: object }> {
  for (;;) {
    const child = spawn(process.execPath, [join(ROOT, "agent/bin/launch.js"), ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ready = await readReadyEvent(child.stdout);
    child.stdout.resume();
    if (ready !== undefined) return { child, ready };
    await stopChild(child);
    await sleep(200);
  }
}

/** @returns undefined when the command reports a problem first, or ends. */
async function readReadyEvent(output: Readable): Promise<object | undefined> {
  for await (const line of createInterface(output)) {
    const event = JSON.parse(line) as { event: string };
    if (event.event === "ready") return event;
    if (event.event !== "inspect") return undefined;
  }
  return undefined;
}

// ── Small requests ──

async function measureRequests(bench: Bench, seconds: number): Promise<Row[]> {
  const { relay, agent, origin, publicPort } = bench;
  const rows: Row[] = [];
  for (let run = 1; run <= ROUNDS; run += 1) {
    const plan = { host: "tcp", path: "/", connections: CONNECTIONS, seconds };
    const direct = await measureLoad({ ...plan, port: origin.port }, []);
    const pids = [relay.pid, agent.pid ?? 0];
    const tunneled = await measureLoad({ ...plan, port: publicPort }, pids);
    const [relayMicros = NaN, agentMicros = NaN] = tunneled.cpuMicros;
    rows.push({
      group: "tcp: GETs over 32 connections",
      round: run,
      "direct req/s": Math.round(direct.requestsPerSecond),
      "tunnel req/s": Math.round(tunneled.requestsPerSecond),
      ratio: formatPercent(tunneled.requestsPerSecond / direct.requestsPerSecond),
      "p50 ms": round(tunneled.p50, 2),
      "p99 ms": round(tunneled.p99, 2),
      errors: tunneled.errors,
      "relay µs/req": round(relayMicros, 1),
      "agent µs/req": round(agentMicros, 1),
    });
  }
  return rows;
}

// ── One stream ──

async function measureStream({ relay, agent, origin, publicPort }: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [path, transfer] of [
    ["download", download],
    ["upload", upload],
  ] as const) {
    for (let run = 1; run <= ROUNDS; run += 1) {
      const direct = await transfer(origin.port, STREAM_BYTES);
      const readCpuMs = startCpuMeter([relay.pid, agent.pid ?? 0]);
      const tunneled = await transfer(publicPort, STREAM_BYTES);
      const [relayMs = NaN, agentMs = NaN] = readCpuMs();
      const perGB = (ms: number) => Math.round(ms / (STREAM_BYTES / 1e9));
      rows.push({
        group: "tcp: one stream",
        path,
        round: run,
        "direct MB/s": Math.round(direct),
        "tunnel MB/s": Math.round(tunneled),
        ratio: formatPercent(tunneled / direct),
        "relay ms/GB": perGB(relayMs),
        "agent ms/GB": perGB(agentMs),
      });
    }
  }
  return rows;
}

/** @returns megabytes a second. */
async function download(port: number, bytes: number): Promise<number> {
  let received = 0;
  const socket = connect({
    port,
    host: "127.0.0.1",
    onread: {
      buffer: RECEIVE_BUFFER,
      callback: (length) => {
        received += length;
        if (received >= bytes) socket.destroy();
        return true;
      },
    },
  });
  await once(socket, "connect");
  const startedAt = performance.now();
  socket.write(`GET /bytes?n=${bytes} HTTP/1.1\r\nhost: tcp\r\n\r\n`);
  await once(socket, "close");
  if (received < bytes) throw new Error(`${received} of ${bytes} bytes received`);
  return bytes / 1000 / (performance.now() - startedAt);
}

async function upload(port: number, bytes: number): Promise<number> {
  const socket = connect({ port, host: "127.0.0.1" });
  await once(socket, "connect");
  const startedAt = performance.now();
  socket.write(`POST / HTTP/1.1\r\nhost: tcp\r\ncontent-length: ${bytes}\r\n\r\n`);
  let left = bytes;
  while (left > 0) {
    const part = left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK;
    left -= part.length;
    if (!socket.write(part)) await once(socket, "drain");
  }
  const [answer] = (await once(socket, "data")) as [Buffer];
  if (!answer.includes(`read ${bytes}`)) throw new Error(`answered ${answer.toString()}`);
  socket.destroy();
  return bytes / 1000 / (performance.now() - startedAt);
}

// ── Many connections ──

async function measureMany({ relay, agent, publicPort }: Bench): Promise<Row> {
  const startedAt = performance.now();
  const sockets = await Promise.all(Array.from({ length: MANY }, () => get(publicPort, "/")));
  const answered = await Promise.all(
    sockets.map((socket) =>
      Promise.race([
        once(socket.resume(), "data").then(() => true),
        once(socket, "close").then(() => false),
      ]).catch(() => false),
    ),
  );
  const row = {
    group: "tcp: connections at once",
    connections: MANY,
    answered: answered.filter((isAnswered) => isAnswered).length,
    "ms until all were": Math.round(performance.now() - startedAt),
    "relay MiB": Math.round(getResidentMiB(relay.pid)),
    "agent MiB": Math.round(getResidentMiB(agent.pid ?? 0)),
  };
  await close(sockets);
  // The relay limits the rate of new connections from one address: let its burst allowance recover.
  await sleep(SOURCE_REST_MS);
  return row;
}

/** Visitors that request large responses and read nothing. */
async function measureStalled({ relay, agent, publicPort }: Bench): Promise<Row> {
  const pids = { relay: relay.pid, agent: agent.pid ?? 0 };
  const before = { relay: getResidentMiB(pids.relay), agent: getResidentMiB(pids.agent) };
  const sockets = await Promise.all(
    Array.from({ length: MANY }, () => get(publicPort, `/bytes?n=${STALLED_BYTES}`)),
  );
  const most = { ...before };
  for (let second = 0; second < 10; second += 1) {
    await sleep(1_000);
    most.relay = Math.max(most.relay, getResidentMiB(pids.relay));
    most.agent = Math.max(most.agent, getResidentMiB(pids.agent));
  }
  await close(sockets);
  await sleep(SOURCE_REST_MS);
  return {
    group: "tcp: memory with readers that take nothing",
    connections: MANY,
    "relay before MiB": Math.round(before.relay),
    "relay grew MiB": Math.round(most.relay - before.relay),
    "agent before MiB": Math.round(before.agent),
    "agent grew MiB": Math.round(most.agent - before.agent),
  };
}

async function get(port: number, path: string): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1" });
  socket.on("error", () => undefined);
  await once(socket, "connect");
  socket.pause();
  socket.write(`GET ${path} HTTP/1.1\r\nhost: tcp\r\n\r\n`);
  return socket;
}

async function close(sockets: Socket[]): Promise<void> {
  await Promise.all(
    sockets.map(async (socket) => {
      if (socket.closed) return;
      const closed = once(socket, "close");
      socket.destroy();
      await closed;
    }),
  );
}

// ── underpass connect ──

async function measureConnect({ origin, connectPort, server }: Bench): Promise<Row[]> {
  const workerd = await server.getPid("workerd");
  const rows: Row[] = [];
  for (const [path, transfer] of [
    ["download", download],
    ["upload", upload],
  ] as const) {
    const direct = await transfer(origin.port, GiB);
    const before = getCpuMs(workerd);
    const tunneled = await transfer(connectPort, GiB);
    rows.push({
      group: "connect: 1 GiB",
      path,
      "direct MB/s": Math.round(direct),
      "MB/s": Math.round(tunneled),
      "workerd ms/GB": Math.round((getCpuMs(workerd) - before) / (GiB / 1e9)),
    });
  }
  return rows;
}
