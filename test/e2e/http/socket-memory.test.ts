/** The memory of a server for visitors' WebSockets that read nothing. */
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { WebSocketServer } from "ws";
import { startStack, type Stack } from "../../harness/server/stack.ts";
import { readResidentMiB } from "../../harness/server/resident-memory.ts";
import { buildFrame, OPCODE, RawWebSocket } from "../../harness/tunnel/raw-websocket.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const MIB = 1024 * 1024;
const GROWTH_MAX_MIB = 64;
const MESSAGE = Buffer.alloc(64 * 1024, "a");
/** More than the kernel takes for each connection on the way. */
const ATTACK_BYTES = 256 * MIB;

let stack: Stack;
/** What the local server has written to its WebSockets, and not to the agent's connection. */
let writtenBytes = 0;
const site = createServer();
const sockets = new WebSocketServer({ server: site });

beforeAll(async () => {
  site.listen(0, "127.0.0.1");
  [stack] = await Promise.all([startStack(), once(site, "listening")]);
  await stack.expose({ port: (site.address() as AddressInfo).port, subdomain: "unread" });
});
afterAll(async () => {
  await stack.stop();
  sockets.close();
  site.closeAllConnections();
  site.close();
});

/** The local server sends as fast as its connection takes it. */
sockets.on("connection", (socket) => {
  socket.on("error", () => undefined);
  const sendMore = () => {
    if (socket.readyState !== socket.OPEN || writtenBytes >= sockets.clients.size * ATTACK_BYTES)
      return;
    socket.send(MESSAGE, () => {
      writtenBytes += MESSAGE.length;
      sendMore();
    });
  };
  socket.on("message", () => {
    for (let i = 0; i < 16; i += 1) sendMore();
  });
});

/** Measures workerd and the front proxy. */
async function measure(): Promise<number[]> {
  const server = await stack.server.getPid("server");
  const children = await readFile(`/proc/${server}/task/${server}/children`, "latin1");
  const pids = children.trim().split(" ").map(Number);
  const commands = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1")));
  const measured = pids.filter((_, i) => /workerd|front-proxy/.test(commands[i]!));
  expect(measured).toHaveLength(2);
  return Promise.all(measured.map(readResidentMiB));
}

/** Resolves when nothing has moved for a while. */
async function untilStopped(): Promise<void> {
  let last = -1;
  await vi.waitUntil(
    () => {
      const hasStopped = writtenBytes === last;
      last = writtenBytes;
      return hasStopped;
    },
    { ...WAIT_OPTIONS, interval: 500 },
  );
}

test.skipIf(process.platform !== "linux").each([1, 20])(
  "%i visitors who read nothing slow down the local server, and cost less than 64 MiB",
  async (count) => {
    writtenBytes = 0;
    const before = await measure();
    const host = `unread.localhost:${stack.server.port}`;
    const visitors: RawWebSocket[] = [];
    for (let i = 0; i < count; i += 1) {
      const visitor = await RawWebSocket.open({ port: stack.server.port, host });
      visitor.socket.pause();
      visitor.send({ opcode: OPCODE.text, payload: "start" });
      visitors.push(visitor);
    }
    await untilStopped();
    const growthsMiB = (await measure()).map((value, i) => Math.round(value - before[i]!));
    for (const { socket } of visitors) socket.destroy();
    const report = `${writtenBytes} bytes; workerd and front proxy: ${growthsMiB.join(", ")} MiB`;
    expect(writtenBytes, report).toBeLessThan(count * ATTACK_BYTES);
    expect(Math.max(...growthsMiB), report).toBeLessThan(GROWTH_MAX_MIB);
  },
);

test.skipIf(process.platform !== "linux")(
  "messages that never end cost less than 64 MiB, however many visitors of one source send them, and others can send theirs",
  async () => {
    const before = await measure();
    const open = (from: string) =>
      RawWebSocket.open({
        port: stack.server.port,
        host: `unread.localhost:${stack.server.port}`,
        from,
      });
    const attackers = await Promise.all(Array.from({ length: 20 }, () => open("127.0.0.2")));
    // Built once: masking takes so long that the agent, which runs in this process, would miss its heartbeats.
    const begin = (opcode: number, bytes: number) =>
      buildFrame({ opcode, payload: Buffer.alloc(bytes), fin: false });
    const first = begin(OPCODE.binary, 16 * MIB);
    const second = begin(OPCODE.continuation, MIB);
    for (const { socket } of attackers) {
      socket.write(first);
      // More than the proxy reads at once, so that the refusal is between two frames.
      socket.write(second);
    }
    let refused = 0;
    for (const attacker of attackers) {
      const closed = attacker.next().then((frame) => {
        expect(frame?.payload.readUInt16BE()).toBe(1013);
        refused += 1;
      });
      closed.catch(() => undefined);
    }
    await vi.waitUntil(() => refused >= attackers.length - 2, WAIT_OPTIONS);
    // The parts of refused messages that had arrived are freed a little later.
    await vi.waitUntil(async () => {
      const growthsMiB = (await measure()).map((value, i) => value - before[i]!);
      return Math.max(...growthsMiB) < GROWTH_MAX_MIB;
    }, WAIT_OPTIONS);

    const honest = await open("127.0.0.3");
    const text = Buffer.alloc(MIB, "b");
    honest.send({ opcode: OPCODE.binary, payload: text, fin: false });
    honest.send({ opcode: OPCODE.continuation, payload: text });
    // The local server answers a complete message.
    expect((await honest.next())?.payload.length).toBeGreaterThan(0);
    for (const { socket } of [...attackers, honest]) socket.destroy();
  },
);
