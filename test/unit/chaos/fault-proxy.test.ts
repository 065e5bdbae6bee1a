import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  GOOD_NETWORK,
  startFaultProxy,
  type FaultProxy,
} from "../../../chaos/faults/fault-proxy.ts";
import { reservePort } from "../../harness/ports.ts";
import { createRandom } from "../../harness/random.ts";
import { startEcho, startLocalServer, type LocalServer } from "../../harness/relay/tcp/stack.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const random = createRandom(1);
const BYTES = Buffer.from(random.bytes(20_000));
let echo: LocalServer;
let proxy: FaultProxy;

beforeEach(async () => {
  echo = await startEcho();
  proxy = await startFaultProxy(echo.port, { random });
});
afterEach(async () => {
  await proxy[Symbol.asyncDispose]();
  await echo[Symbol.asyncDispose]();
});

async function open(port = proxy.port): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  return socket;
}

async function readUntil(socket: Socket, bytes: number): Promise<Buffer> {
  let received = Buffer.alloc(0);
  socket.on("data", (part: Buffer) => (received = Buffer.concat([received, part])));
  await vi.waitUntil(() => received.length >= bytes, WAIT_OPTIONS);
  return received;
}

describe("a fault proxy", () => {
  test.each([
    ["a good network", GOOD_NETWORK],
    ["latency and jitter", { ...GOOD_NETWORK, latencyMs: 5, jitterMs: 20 }],
    ["slices of 500 bytes", { ...GOOD_NETWORK, sliceBytes: 500 }],
    ["a narrow network", { ...GOOD_NETWORK, bytesPerSecond: 1_000_000 }],
  ])("forwards all bytes in order, then the end: %s", async (_, conditions) => {
    proxy.setConditions(conditions);
    const socket = await open();
    const ended = once(socket, "end");
    socket.end(BYTES);
    expect((await readUntil(socket, BYTES.length)).equals(BYTES)).toBe(true);
    await ended;
  });

  test("delays every part by the latency", async () => {
    proxy.setConditions({ ...GOOD_NETWORK, latencyMs: 100 });
    const socket = await open();
    const startedAtMs = performance.now();
    socket.write("x");
    await readUntil(socket, 1);
    // There and back; a timer of Node.js may fire a millisecond early.
    expect(performance.now() - startedAtMs).toBeGreaterThanOrEqual(198);
    socket.destroy();
  });

  test("resets a connection on both sides", async () => {
    const socket = await open();
    socket.write("x");
    await readUntil(socket, 1);
    const [atServer] = echo.sockets;
    const errors = Promise.all([once(socket, "error"), once(atServer!, "error")]);
    proxy.reset();
    for (const [error] of await errors) expect(error).toMatchObject({ code: "ECONNRESET" });
    await vi.waitUntil(() => proxy.openConnections === 0, WAIT_OPTIONS);
  });

  test("closes connections without a reset, and accepts new ones", async () => {
    const socket = await open();
    socket.write("x");
    await readUntil(socket, 1);
    const ended = once(socket, "end");
    proxy.cut();
    await ended;
    await vi.waitUntil(() => proxy.openConnections === 0, WAIT_OPTIONS);
    const next = await open();
    next.write("y");
    await readUntil(next, 1);
    expect(proxy.acceptedConnections).toBe(2);
    next.destroy();
  });

  test("resets a connection when a part is lost for good", async () => {
    proxy.setConditions({ ...GOOD_NETWORK, resetPerMille: 1_000 });
    const socket = await open();
    socket.write("x");
    expect((await once(socket, "error"))[0]).toMatchObject({ code: "ECONNRESET" });
  });

  test("forwards a reset of the server as a reset", async () => {
    await using server = await startLocalServer((socket) => socket.resetAndDestroy());
    await using other = await startFaultProxy(server.port, { random });
    const socket = await open(other.port);
    expect((await once(socket, "error"))[0]).toMatchObject({ code: "ECONNRESET" });
  });

  test("makes open connections half-open, and serves new ones", async () => {
    const frozen = await open();
    frozen.write("x");
    await readUntil(frozen, 1);
    proxy.freeze();
    const [atServer] = echo.sockets;
    const onEnd = vi.fn();
    frozen.on("data", onEnd).on("end", onEnd).on("close", onEnd);
    atServer!.on("data", onEnd).on("end", onEnd).on("close", onEnd);
    frozen.write("y");
    const fresh = await open();
    fresh.write("x");
    await readUntil(fresh, 1);
    expect(onEnd).not.toHaveBeenCalled();
    frozen.on("error", () => undefined);
    fresh.destroy();
  });

  test("resets a connection when no server listens, unless it is told to wait for one", async () => {
    const port = await reservePort();
    await using refusing = await startFaultProxy(port, { random });
    expect((await once(await open(refusing.port), "error"))[0]).toMatchObject({
      code: "ECONNRESET",
    });
    await using waiting = await startFaultProxy(port, { random, connectMaxMs: 60_000 });
    const socket = await open(waiting.port);
    socket.write("late");
    await using _server = await startEchoAt(port);
    expect(String(await readUntil(socket, 4))).toBe("late");
    socket.destroy();
  });
});

async function startEchoAt(port: number): Promise<AsyncDisposable> {
  const { createServer } = await import("node:net");
  const server = createServer((socket) => socket.on("error", () => undefined).pipe(socket));
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return {
    async [Symbol.asyncDispose]() {
      server.close();
      await once(server, "close");
    },
  };
}
