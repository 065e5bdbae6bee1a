/** Remote clients as the local server sees them. The server of this test echoes datagrams. */
import { createSocket, Socket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { toLoopbackAddress } from "../../../../agent/vpn/loopback-address.ts";
import { PeerSockets } from "../../../../agent/vpn/peer-sockets.ts";
import { PortProbe } from "../../../../agent/vpn/port-probe.ts";
import { FLOWS_PER_PORT_MAX } from "../../../../protocol/relay/limits.ts";
import type { Flow } from "../../../../protocol/relay/control.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { reservePort } from "../../../harness/ports.ts";

let port: number;
let server: Socket | undefined;
let sources: Map<string, RemoteInfo>;
let answers: string[];
let listening: boolean[];
let closed: number[];
let peers: PeerSockets;

async function startServer(): Promise<void> {
  server = createSocket("udp4");
  server.on("message", (message, source) => {
    sources.set(message.toString(), source);
    server?.send(message, source.port, source.address);
  });
  server.bind(port, "127.0.0.1");
  await once(server, "listening");
}
async function stopServer(): Promise<void> {
  const stopped = server;
  server = undefined;
  if (!stopped) return;
  stopped.close();
  await once(stopped, "close");
}

beforeEach(async () => {
  port = await reservePort();
  [sources, answers, listening, closed] = [new Map(), [], [], []];
  await startServer();
  peers = new PeerSockets(port, {
    onDatagram: (flow, payload) => answers.push(`${flow}:${payload.toString()}`),
    onListeningChange: (isListening) => listening.push(isListening),
    onClose: (flow) => closed.push(flow),
  });
});
afterEach(async () => {
  vi.useRealTimers();
  peers.closeAll();
  await stopServer();
});

const newFlow = (id: number, address = "203.0.113.9"): Flow => ({
  id,
  address,
  port: 1_000 + (id % 60_000),
  tag: `tag of ${id}`,
});
const until = (condition: () => boolean) => vi.waitUntil(condition, WAIT_OPTIONS);

test("each client has its own endpoint, and receives its own answers", async () => {
  for (const id of [0, 1, 0xffff_ffff]) {
    peers.open(newFlow(id, `203.0.113.${id % 200}`), 1);
    peers.deliver(id, Buffer.from(`from ${id}`));
  }
  await until(() => answers.length === 3);
  expect(answers.sort()).toEqual(["0:from 0", "1:from 1", "4294967295:from 4294967295"]);
  const endpoints = [...sources.values()].map((source) => `${source.address}:${source.port}`);
  expect(new Set(endpoints).size).toBe(3);
  if (process.platform !== "linux") return;
  expect(new Set([...sources.values()].map(({ address }) => address)).size).toBe(3);
});

test("a datagram that overtakes the announcement of its flow waits; datagrams of unknown flows are dropped", async () => {
  peers.deliver(7, Buffer.from("early"));
  peers.deliver(8, Buffer.from("of no flow"));
  peers.open(newFlow(7), 1);
  await until(() => answers.length > 0);
  for (let n = 0; n < 1_000; n += 1) peers.deliver(9, Buffer.alloc(100));
  expect(peers.unknownDatagrams).toBeGreaterThan(900);
  expect(answers).toEqual(["7:early"]);
  expect(peers.size).toBe(1);
});

test("it is reported once when nothing listens, and again when something does", async () => {
  peers.open(newFlow(1), 1);
  peers.deliver(1, Buffer.from("hello"));
  await until(() => answers.length === 1);
  await stopServer();
  await until(() => {
    peers.deliver(1, Buffer.from("into the void"));
    return listening.length > 0;
  });
  peers.deliver(1, Buffer.from("again"));
  await startServer();
  await until(() => {
    peers.deliver(1, Buffer.from("back"));
    return answers.includes("1:back");
  });
  expect(listening).toEqual([false, true]);
});

test("the port is probed before a client connects, and again while nothing listens", async () => {
  await stopServer();
  const results: boolean[] = [];
  const probe = new PortProbe((isListening) => results.push(isListening));
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  try {
    probe.start(port);
    await until(() => results.at(-1) === false);
    await startServer();
    vi.advanceTimersByTime(2_000);
    await until(() => results.at(-1) === true);
  } finally {
    probe.stop();
  }
});

test("flows are resumed under the association that each was announced in", () => {
  peers.open(newFlow(1), 10);
  peers.open(newFlow(2), 10);
  peers.open(newFlow(3), 11);
  peers.open({ ...newFlow(2), tag: "newer" }, 11);
  expect(peers.buildResumeMessages()).toEqual([
    { type: "resume", association: 10, flows: [newFlow(1)] },
    { type: "resume", association: 11, flows: [{ ...newFlow(2), tag: "newer" }, newFlow(3)] },
  ]);
  expect(peers.size).toBe(3);
});

test("a resume of many flows is split into messages that a relay accepts", () => {
  for (let id = 0; id < 600; id += 1) peers.open(newFlow(id), 1);
  const messages = peers.buildResumeMessages();
  expect(messages.map(({ flows }) => flows.length)).toEqual([256, 256, 88]);
});

test("known clients reach a server that moves to another port", async () => {
  peers.open(newFlow(1), 1);
  peers.deliver(1, Buffer.from("here"));
  await until(() => answers.length === 1);
  await stopServer();
  port = await reservePort();
  await startServer();
  peers.setPort(port);
  peers.deliver(1, Buffer.from("there"));
  await until(() => answers.includes("1:there"));
});

test("a client that is idle for 200 s loses its socket, and gets another one when it sends again", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  const idle = new PeerSockets(port, {
    onDatagram: (flow, payload) => answers.push(`${flow}:${payload.toString()}`),
    onListeningChange() {},
    onClose: (id) => closed.push(id),
  });
  try {
    for (const id of [1, 2]) {
      idle.open(newFlow(id), 1);
      idle.deliver(id, Buffer.from("first"));
    }
    await until(() => answers.length === 2);
    vi.advanceTimersByTime(150_000);
    idle.deliver(2, Buffer.from("still here"));
    vi.advanceTimersByTime(60_000);
    expect(closed).toEqual([1]);
    idle.deliver(1, Buffer.from("back"));
    await until(() => answers.includes("1:back"));
  } finally {
    idle.closeAll();
  }
});

test("a clock that is set forward closes no client's socket", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "Date"] });
  const onClose = (id: number): void => void closed.push(id);
  const served = new PeerSockets(port, { onDatagram() {}, onListeningChange() {}, onClose });
  served.open(newFlow(1), 1);
  served.deliver(1, Buffer.from("hello"));
  await until(() => sources.has("hello"));
  vi.setSystemTime(Date.now() + 3_600_000);
  vi.advanceTimersByTime(60_000);
  expect(closed).toEqual([]);
  served.closeAll();
});

test("a client whose socket could not be bound gets another one when it sends again", async () => {
  const bind = vi.spyOn(Socket.prototype, "bind").mockImplementationOnce(function (this: Socket) {
    queueMicrotask(() => this.emit("error", Object.assign(new Error(), { code: "EMFILE" })));
    return this;
  });
  try {
    peers.open(newFlow(1), 1);
    peers.deliver(1, Buffer.from("lost"));
    await until(() => {
      peers.deliver(1, Buffer.from("again"));
      return answers.includes("1:again");
    });
  } finally {
    bind.mockRestore();
  }
});

test("a client above the limit replaces the one that was silent for longest", () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  for (let id = 0; id < FLOWS_PER_PORT_MAX; id += 1) {
    vi.advanceTimersByTime(1);
    peers.open(newFlow(id), 1);
  }
  vi.advanceTimersByTime(1);
  peers.deliver(0, Buffer.from("not me"));
  peers.open(newFlow(FLOWS_PER_PORT_MAX), 1);
  expect(peers.size).toBe(FLOWS_PER_PORT_MAX);
  expect([peers.getFlow(0) !== undefined, peers.getFlow(1)]).toEqual([true, undefined]);
});

test("the loopback address derives from the client's address: one per IPv6 /64, and unpredictable for clients", () => {
  const secret = Buffer.alloc(32, 1);
  const toLoopback = (address: string, key = secret) => toLoopbackAddress(address, "linux", key);
  expect(toLoopback("198.51.100.7")).toMatch(/^127\.\d+\.\d+\.\d+$/);
  expect(toLoopback("198.51.100.7")).toBe(toLoopback("::ffff:198.51.100.7"));
  expect(toLoopback("198.51.100.7")).not.toBe(toLoopback("198.51.100.8"));
  expect(toLoopback("2001:db8::1")).toBe(toLoopback("2001:db8::ffff"));
  expect(toLoopback("2001:db8::1")).not.toBe(toLoopback("2001:db8:0:1::1"));
  expect(toLoopback("198.51.100.7")).not.toBe(toLoopback("198.51.100.7", Buffer.alloc(32, 2)));
  const all = Array.from({ length: 2_000 }, (_, n) => toLoopback(`10.0.${n >> 8}.${n & 255}`));
  expect(all.filter((address) => /^127\.(0|255)\./.test(address))).toEqual([]);
  expect(toLoopbackAddress("198.51.100.7", "darwin")).toBe("127.0.0.1");
});
