/** The agent's UDP path to a relay and the fallback to the WebSocket, through a faulty proxy. */
import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { DatagramPath, type Transport } from "../../../../agent/relay-client/datagram-path.ts";
import { writeBound } from "../../../../protocol/relay/datagrams.ts";
import { startFakeRelay, type FakeRelay } from "../../../harness/networks/fake-relay.ts";
import { WAIT_MAX_MS, WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { startUdpProxy, type UdpProxy } from "../../../harness/relay/udp-proxy.ts";

/** The protocol's intervals, divided by some thirty. */
const TIMING = { intervalMs: 400, retryMs: 50, startMaxMs: 300, probeMs: 600 };

let relay: FakeRelay;
let proxy: UdpProxy;
let path: DatagramPath;
let transports: Transport[];
let received: string[];
let overWebSocket: Buffer[];
let link: { bufferedBytes: number; sendBinary(message: Buffer): void };

beforeEach(async () => {
  relay = await startFakeRelay();
  proxy = await startUdpProxy(relay.port);
  [transports, received, overWebSocket] = [[], [], []];
  link = { bufferedBytes: 0, sendBinary: (message) => overWebSocket.push(message) };
  path = createPath(TIMING);
});
afterEach(async () => {
  path.close();
  await proxy[Symbol.asyncDispose]();
  await relay[Symbol.asyncDispose]();
});

function createPath(timing: typeof TIMING): DatagramPath {
  const events = {
    onDatagram: (flow: number, payload: Buffer) => received.push(`${flow}:${payload.toString()}`),
    onTransportChange: (transport: Transport) => transports.push(transport),
  };
  return new DatagramPath(link, events, timing);
}

const open = (port = proxy.port, host = "127.0.0.1") =>
  path.open(
    {
      type: "welcome",
      kind: "network",
      epoch: "1",
      association: relay.association,
      key: relay.key.toString("base64"),
      udpPort: port,
      publicEndpoint: "relay.example:40001",
    },
    host,
  );
const until = (condition: () => boolean) => vi.waitUntil(condition, WAIT_OPTIONS);
const decided = (transport: Transport) => until(() => transports.at(-1) === transport);

describe("at the start", () => {
  test("UDP is used as soon as it answers, and has a latency", async () => {
    path.close();
    path = createPath({ ...TIMING, startMaxMs: WAIT_MAX_MS });
    open();
    await decided("udp");
    expect(transports).toEqual(["udp"]);
    expect(path.quality).toMatchObject({ transport: "udp", loss: null });
    expect(path.quality.latencyMs).toBeGreaterThan(0);
    expect(path.buffers?.receiveBytes).toBeGreaterThan(64 * 1024);
  });

  test("the WebSocket is used while UDP is blocked, and UDP afterwards", async () => {
    proxy.block();
    const startedAtMs = performance.now();
    open();
    await decided("websocket");
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(TIMING.startMaxMs - 5);
    path.send(7, Buffer.from("one"));
    path.send(0xffff_ffff, Buffer.from("two"));
    await until(() => overWebSocket.length > 0);
    // Both share one message, and can be read back from it.
    expect(overWebSocket).toHaveLength(1);
    expect(path.receive(overWebSocket[0]!)).toBe(true);
    expect(received).toEqual(["7:one", "4294967295:two"]);
    proxy.unblock();
    await decided("udp");
    expect(transports).toEqual(["websocket", "udp"]);
  });

  test.each(["does-not-exist.invalid", "127.0.0.1"])(
    "a relay that can't be reached at %s leaves the WebSocket, and crashes nothing",
    async (host) => {
      const port = relay.port;
      await relay[Symbol.asyncDispose]();
      open(port, host);
      await decided("websocket");
      path.send(1, Buffer.from("still here"));
      await until(() => overWebSocket.length > 0);
      relay = await startFakeRelay();
    },
  );
});

describe("BIND", () => {
  test("is repeated with a rising counter, which starts at the clock", async () => {
    const before = Date.now();
    open();
    await until(() => relay.binds.length >= 3);
    expect(relay.binds[0]).toBeGreaterThanOrEqual(before);
    expect(relay.binds).toEqual([...relay.binds].sort((a, b) => a - b));
    expect(new Set(relay.binds).size).toBe(relay.binds.length);
    // Answered ones keep their socket, and with it the NAT's mapping.
    expect(new Set(relay.sources).size).toBe(1);
  });

  test("without an answer is repeated soon, the last time from another port", async () => {
    open();
    await decided("udp");
    relay.isAnswering = false;
    const sent = relay.binds.length;
    await decided("websocket");
    expect(relay.binds.length - sent).toBe(3);
    expect(relay.sources.at(-1)).not.toBe(relay.sources[0]);
    relay.isAnswering = true;
    await decided("udp");
  });

  test("gives the relay the new mapping when the NAT drops the old one", async () => {
    open();
    await decided("udp");
    await proxy.rebind();
    await until(() => {
      relay.send(1, "again");
      return received.length > 0;
    });
    expect(transports).toEqual(["udp"]);
  });

  test("ignores a BOUND that is forged, old or for another association", async () => {
    relay.isAnswering = false;
    open();
    await decided("websocket");
    const { binds, association, key } = relay;
    relay.isAnswering = true;
    await decided("udp");
    relay.isAnswering = false;
    await decided("websocket");
    const bound = (...[id, counter, with_]: [number, number, Buffer]) =>
      relay.sendRaw(writeBound(id, { counter, address: Buffer.alloc(16), port: 1 }, with_));
    bound(association, binds.at(-1)!, Buffer.alloc(32));
    bound(association, binds[0]!, key);
    bound(association, Date.now() + 1e6, key);
    bound(association - 1, binds.at(-1)!, key);
    relay.send(1, "after");
    await until(() => received.includes("1:after") || transports.at(-1) === "udp");
    expect(transports.at(-1)).toBe("websocket");
  });
});

describe("datagrams", () => {
  test("pass both ways with any flow number", async () => {
    open();
    await decided("udp");
    for (const flow of [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]) {
      path.send(flow, Buffer.from("out"));
      relay.send(flow, "in");
    }
    await until(() => received.length === 5 && relay.datagrams.length === 5);
    const flows = [0, 1, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
    expect(relay.datagrams.map(({ flow }) => flow)).toEqual(flows);
    expect(received).toEqual(flows.map((flow) => `${flow}:in`));
  });

  test("measure losses, without duplicates and late datagrams", async () => {
    open();
    await decided("udp");
    proxy.setFaults({ duplicates: 0.3, reordered: 0.3, seed: 3 });
    for (let n = 0; n < 200; n += 1) {
      relay.send(1, `message ${n}`);
      if (n % 20 === 0) await new Promise(setImmediate);
    }
    await until(() => new Set(received).size === 200);
    expect(path.quality.loss).toBe(0);
    proxy.setFaults({});
    for (let n = 0; n < 200; n += 1) if (n % 4 !== 0) relay.send(1, `after ${n}`, 201 + n);
    await until(() => new Set(received).size === 350);
    expect(path.quality.loss).toBeCloseTo(50 / 400, 1);
  });

  test("that are malformed are ignored", async () => {
    open();
    await decided("udp");
    for (const bytes of [[], [0x10], [0x10, 0, 0], [0x99, 0, 0, 1, 0, 0, 0, 1, 5]]) {
      relay.sendRaw(Buffer.from(bytes));
    }
    relay.send(1, "good");
    await until(() => received.length > 0);
    expect(received).toEqual(["1:good"]);
    expect(path.receive(Buffer.from([0x10, 0, 0, 9, 0, 0, 0, 1, 1]))).toBe(false);
  });

  test("are dropped instead of queued when the WebSocket is congested", async () => {
    proxy.block();
    open();
    await decided("websocket");
    link.bufferedBytes = 10_000_000;
    for (let n = 0; n < 100; n += 1) path.send(1, Buffer.alloc(1_400));
    await new Promise(setImmediate);
    expect(overWebSocket).toEqual([]);
    link.bufferedBytes = 0;
    path.send(1, Buffer.from("flows again"));
    await until(() => overWebSocket.length === 1);
  });
});

test("a new association sends BINDs with its own number and key", async () => {
  open();
  await decided("udp");
  const before = relay.binds.length;
  relay.association = 5;
  relay.key = randomBytes(32);
  transports = [];
  open();
  await decided("udp");
  expect(relay.binds.length).toBeGreaterThan(before);
});
