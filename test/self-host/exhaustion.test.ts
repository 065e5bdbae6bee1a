/** A stranger who takes connections without end: the server, its agents and its other visitors go on. */
import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import { expose, type ExposedTunnel } from "../../agent/expose.ts";
import { createFirstAccount } from "../../bench/stack.ts";
import { REQUESTS_IN_FLIGHT_MAX } from "../../self-host/front-proxy/queue/workerd-queues.ts";
import { requestText } from "../../self-host/internal-requests.ts";
import { parseFamilies } from "../../self-host/metrics/parts.ts";
import { getCommandLine } from "../../self-host/processes/processes.ts";
import type { MetricFamily } from "../../shared/metrics/exposition.ts";
import { startExpectingFailure, startServer, type TestServer } from "../harness/server/server.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";
import { startRawOrigin, OK, type RawOrigin } from "../harness/tunnel/origin.ts";
import { exchange, findHeader } from "../harness/tunnel/raw-http.ts";

/** The fewest that a server starts with. They allow 128 connections, and 64 of one source. */
const DESCRIPTORS = 1_024;
const PER_SOURCE = 64;

let server: TestServer;
let origin: RawOrigin;
let echo: WebSocketServer;
let tunnel: ExposedTunnel;
let sockets: ExposedTunnel;
/** Connections to the local server whose requests it never answers. */
const waiting = new Set<Socket>();

beforeAll(async () => {
  server = await startServer({ descriptors: DESCRIPTORS });
  origin = await startRawOrigin(({ target }, socket) => {
    if (target !== "/never") return OK;
    waiting.add(socket);
    socket.once("close", () => waiting.delete(socket));
    return undefined;
  });
  echo = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  echo.on("connection", (socket) => socket.on("message", (data) => socket.send(data)));
  await once(echo, "listening");
  const { token } = await createFirstAccount(server);
  const { port: echoPort } = echo.address() as { port: number };
  tunnel = await expose({
    server: server.url,
    token,
    origin: `127.0.0.1:${origin.port}`,
    subdomain: "held",
  });
  sockets = await expose({ server: server.url, token, port: echoPort, subdomain: "echo" });
});
afterAll(async () => {
  await Promise.all([tunnel.close(), sockets.close()]);
  await Promise.all([server.stop(), origin.stop()]);
  echo.close();
});

const host = (name: string) => `${name}.localhost:${server.port}`;
const get = (path: string, field = "") =>
  `GET ${path} HTTP/1.1\r\nHost: ${host("held")}\r\n${field}\r\n`;
const visit = () => exchange(server.port, get("/"));

/** A connection that sends `text`. Linux has as many loopback addresses as a test needs. */
function open(source: string, text = ""): Socket {
  const socket = connect({ port: server.port, host: "127.0.0.1", localAddress: source });
  socket.on("error", () => undefined);
  socket.resume().write(text);
  return socket;
}

/** Resolves when the connection is open, or has been closed. */
function waitForConnection(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    socket.once("connect", resolve).once("close", () => resolve());
  });
}

async function countDescriptors(): Promise<number> {
  return (await readdir(`/proc/${await server.getPid("workerd")}/fd`)).length;
}

async function closeAll(attack: Socket[]): Promise<void> {
  for (const socket of attack) socket.destroy();
  // Only when all of them are released does a source get its full share again.
  const isFree = async () => {
    const probes = Array.from({ length: PER_SOURCE }, () => open("127.0.0.2", get("/")));
    const answers = await Promise.all(probes.map(readStart));
    for (const probe of probes) probe.destroy();
    return answers.every((text) => text.startsWith("HTTP/1.1 200"));
  };
  await vi.waitUntil(isFree, WAIT_OPTIONS);
}

/** The first bytes that the connection receives; empty when it ends without any. */
function readStart(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once("data", (bytes: Buffer) => resolve(bytes.toString("latin1")));
    socket.once("close", () => resolve(""));
  });
}

describe.runIf(process.platform === "linux")("a stranger", () => {
  test("with silent connections from many addresses stops neither the server nor anything that is open", async () => {
    const workerd = await server.getPid("workerd");
    const socket = new WebSocket(`ws://127.0.0.1:${server.port}`, {
      headers: { host: host("echo") },
    });
    await once(socket, "open");
    const before = await countDescriptors();

    const attack: Socket[] = [];
    while (attack.length < 2_000) {
      const wave = Array.from({ length: 100 }, (_, at) => open(`127.0.1.${1 + (at % 40)}`));
      attack.push(...wave);
      // More at once would fill the queue of the listening port. A silent client never learns that the kernel dropped its
      // connection.
      await Promise.all(wave.map(waitForConnection));
    }
    await vi.waitUntil(() => attack.filter((one) => one.destroyed).length > 1_800, WAIT_OPTIONS);

    expect(await countDescriptors()).toBeLessThanOrEqual(before);
    socket.send("still here");
    expect(String((await once(socket, "message"))[0])).toBe("still here");
    socket.close();
    await closeAll(attack);
    expect(await server.getPid("workerd")).toBe(workerd);
    expect((await visit()).status).toBe(200);
    expect(server.output).not.toContain("will be restarted");
  });

  test("with one address takes its share only, and is told when to come again", async () => {
    const attack = Array.from({ length: PER_SOURCE }, () => open("127.0.0.2"));
    const last = open("127.0.0.2");
    const refusal = await readStart(last);
    expect(refusal).toMatch(/^HTTP\/1\.1 503 .*"error":"unavailable"/s);
    expect(refusal).toMatch(/\r\nretry-after: \d+\r\n/);
    expect((await visit()).status).toBe(200);
    await closeAll([...attack, last]);
  });

  test("whose address is gone before its connection is served gets nothing done", async () => {
    const pid = await findFrontProxy();
    const before = await countTunnelRequests();
    process.kill(pid, "SIGSTOP");
    try {
      // The kernel accepts the connection and its request.
      const socket = open("127.0.0.4");
      await once(socket, "connect");
      await new Promise((resolve) => socket.write(get("/gone"), resolve));
      const closed = once(socket, "close");
      socket.resetAndDestroy();
      await closed;
    } finally {
      process.kill(pid, "SIGCONT");
    }
    // It was accepted after the one before.
    expect((await visit()).status).toBe(200);
    expect(await countTunnelRequests()).toBe(before + 1);
  });

  test("who leaves unanswered requests behind holds nothing: neither in workerd nor at the local server", async () => {
    const before = await countDescriptors();
    for (const field of ["", "Connection: close\r\n", "", "Connection: close\r\n"]) {
      const request = get("/never", field);
      const attack = Array.from({ length: PER_SOURCE - 1 }, () => open("127.0.0.3", request));
      await vi.waitUntil(() => waiting.size === attack.length, WAIT_OPTIONS);
      for (const socket of attack) socket.end();
      await vi.waitUntil(() => waiting.size === 0, WAIT_OPTIONS);
    }
    await vi.waitUntil(async () => (await countDescriptors()) <= before + 2, WAIT_OPTIONS);
    expect((await visit()).status).toBe(200);
  });

  test("who sends many requests at once delays another visitor by a few of them only", async () => {
    const workerd = await server.getPid("workerd");
    origin.requests.length = 0;
    process.kill(workerd, "SIGSTOP");
    // Without an answer none leaves its connection to the local server to a later request, which would overtake those that still
    // have to open one: by how many depends on how busy the machine is.
    const flood = Array.from({ length: PER_SOURCE - 1 }, () => open("127.0.0.4", get("/never")));
    const waiting = flood.length - REQUESTS_IN_FLIGHT_MAX;
    await vi.waitUntil(async () => (await countWaitingRequests()) === waiting, WAIT_OPTIONS);
    const visitor = open("127.0.0.5", get("/visitor"));
    await vi.waitUntil(async () => (await countWaitingRequests()) === waiting + 1, WAIT_OPTIONS);
    process.kill(workerd, "SIGCONT");

    await vi.waitUntil(() => origin.requests.length === flood.length + 1, WAIT_OPTIONS);
    const place = origin.requests.findIndex(({ target }) => target === "/visitor");
    // Its turn follows the first ones. Those that are in flight together can overtake each other.
    expect(place).toBeLessThanOrEqual(2 * REQUESTS_IN_FLIGHT_MAX);
    await closeAll([...flood, visitor]);
  });
});

/** Requests that wait in the front proxy, which is asked on its own socket: a scrape would wait for workerd too. */
async function readSamples(name: string): Promise<MetricFamily["samples"]> {
  const socketPath = join(server.dataDir, "run/front.sock");
  const text = await requestText({ socketPath, method: "GET", path: "/metrics" }, 5_000);
  return parseFamilies(text).find((family) => family.name === name)!.samples;
}

async function countWaitingRequests(): Promise<number> {
  const [sample] = await readSamples("underpass_server_requests_waiting");
  return sample!.value;
}

/** Requests for tunnels, answered or not. */
async function countTunnelRequests(): Promise<number> {
  const samples = await readSamples("underpass_server_requests_total");
  const values = samples.map(({ labels, value }) => (labels?.handler === "tunnel" ? value : 0));
  return values.reduce((sum, value) => sum + value, 0);
}

/** Its process id. */
async function findFrontProxy(): Promise<number> {
  const pid = await server.getPid("server");
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  const found = children
    .trim()
    .split(" ")
    .find((child) => getCommandLine(Number(child))?.includes("front-proxy/main.ts"));
  return Number(found);
}

test("a visitor can't set the address that the server sees", async () => {
  const forged = `underpass-connection: {"clientIp":"203.0.113.9"}\r\n`;
  origin.requests.length = 0;
  const request = `GET / HTTP/1.1\r\nHost: ${host("held")}\r\n${forged}\r\n`;
  await exchange(server.port, request);
  const [{ headers }] = origin.requests as [RawOrigin["requests"][number]];
  expect(findHeader(headers, "x-forwarded-for")).toBe("127.0.0.1");
  expect(findHeader(headers, "underpass-connection")).toBeUndefined();
});

test("a server that may open too few files does not start", async () => {
  const { code, stderr } = await startExpectingFailure({}, { descriptors: DESCRIPTORS - 1 });
  expect(code).toBe(1);
  expect(stderr).toBe(
    "underpass: a process may open only 1023 files here, and this server needs 1024: raise the limit (ulimit -n)\n",
  );
});
