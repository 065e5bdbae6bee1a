/** A visitor's connection through the front proxy, to a server that each test plays. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import {
  BODY_PAUSE_MAX_MS,
  FIRST_HEAD_MAX_MS,
  PROGRAM_STALLED_MS,
  PROGRAM_UNREAD_MAX_MS,
  UNREAD_MAX_MS,
} from "../../../../self-host/front-proxy/limits.ts";
import { FrontProxyMetrics } from "../../../../self-host/front-proxy/metrics/front-proxy-metrics.ts";
import { MessageMemory } from "../../../../self-host/front-proxy/websockets/message-memory.ts";
import { HEAD_MAX_BYTES } from "../../../../self-host/front-proxy/request-head.ts";
import { VisitorConnection } from "../../../../self-host/front-proxy/visitor-connection.ts";
import { RequestTrace } from "../../../../shared/tracing/request-trace.ts";
import { adoptSocket } from "../../../../sockets/socket-reader.ts";
import { ConnectionEnd } from "../../../harness/connection-end.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const CF_BLOB_FIELD = "own: field\r\n";
const KEY = "key-of-the-acknowledgements";
const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const CLOSE = "Connection: close\r\n\r\n";
const UPGRADE = "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/** Each source may hold 1,000 bytes. */
const memory = new MessageMemory(2_000);
const observed = {
  apiHosts: new Set<string>(),
  metrics: new FrontProxyMetrics(),
  trace: new RequestTrace("front_proxy", "off"),
  createReservation: () => memory.createReservation("source"),
};
let dir: string;
let upstreamPath: string;
let upstream: Server;
/** The front proxy's connections to the server, in their order. */
let arrived: ConnectionEnd[];
let front: Server;
let connections: VisitorConnection[];
let closed = 0;
let ends: ConnectionEnd[];

beforeAll(async () => {
  dir = await createTemporaryDir();
  upstreamPath = join(dir, "server.sock");
  upstream = createServer({ allowHalfOpen: true }, (socket) =>
    arrived.push(new ConnectionEnd(socket)),
  );
  upstream.listen(upstreamPath);
  front = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) => {
    const onClose = () => (closed += 1);
    const options = { upstreamPath, cfBlobField: CF_BLOB_FIELD, acknowledgementKey: KEY, onClose };
    connections.push(new VisitorConnection(adoptSocket(socket), { ...options, ...observed }));
  });
  front.listen(0, "127.0.0.1");
  await Promise.all([once(upstream, "listening"), once(front, "listening")]);
});
afterAll(async () => {
  upstream.close();
  front.close();
  await rm(dir, { recursive: true });
});
beforeEach(() => {
  arrived = [];
  connections = [];
  ends = [];
  closed = 0;
});
afterEach(async () => {
  for (const { socket } of ends) socket.destroy();
  await vi.waitUntil(() => closed === connections.length, WAIT_OPTIONS);
  for (const { socket } of arrived) socket.destroy();
});

async function visit(): Promise<ConnectionEnd> {
  const socket = connect({ port: (front.address() as AddressInfo).port, allowHalfOpen: true });
  const end = new ConnectionEnd(socket);
  ends.push(end);
  await vi.waitUntil(() => connections.length === ends.length, WAIT_OPTIONS);
  return end;
}

async function server(index = 0): Promise<ConnectionEnd> {
  await vi.waitUntil(() => arrived.length > index, WAIT_OPTIONS);
  return arrived[index]!;
}

async function untilClosed(end: ConnectionEnd): Promise<void> {
  await vi.waitUntil(() => end.isClosed, WAIT_OPTIONS);
}

const passTime = (ms: number) => {
  for (const connection of connections) connection.checkDeadlines(Date.now() + ms);
};

describe("a visitor", () => {
  test("costs the server nothing before its first head is complete", async () => {
    const visitor = await visit();
    for (const byte of GET.slice(0, -1)) visitor.send(byte);
    passTime(FIRST_HEAD_MAX_MS - 1_000);
    expect(arrived).toEqual([]);
    visitor.send(GET.slice(-1));
    await (await server()).waitFor(`GET / HTTP/1.1\r\n${CF_BLOB_FIELD}Host: a\r\n\r\n`);
  });

  test("gets answers to requests that arrive together, each with the added header", async () => {
    const visitor = await visit();
    const post = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
    visitor.send(`\r\n${GET}${post}${GET}`);
    const { received } = await server().then(async (end) => {
      await vi.waitUntil(() => end.received.split("GET").length === 3, WAIT_OPTIONS);
      return end;
    });
    expect(received.split(CF_BLOB_FIELD)).toHaveLength(4);
    expect(received).toContain(`\r\n\r\nabcGET / HTTP/1.1\r\n${CF_BLOB_FIELD}`);
    arrived[0]!.send(OK + OK + OK);
    await visitor.waitFor(OK + OK + OK);
  });

  test.each([
    `GET / HTTP/1.1\r\nHost: a\r\n${CLOSE}`,
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n${CLOSE}ab`,
    "GET / HTTP/1.0\r\n\r\n",
  ])(
    "that sends its last request gets the end of the connection after the answer: %j",
    async (last) => {
      const visitor = await visit();
      visitor.send(GET + last + GET);
      const origin = await server();
      await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
      expect(origin.received.split(CF_BLOB_FIELD)).toHaveLength(3);
      origin.socket.end(OK + OK, "latin1");
      await vi.waitUntil(() => visitor.hasEnded, WAIT_OPTIONS);
      expect(visitor.received).toBe(OK + OK);
    },
  );

  test("that sends its FIN before the answer has left: the server sees the connection closed", async () => {
    const visitor = await visit();
    visitor.send(GET);
    const origin = await server();
    await origin.waitFor("\r\n\r\n");
    visitor.socket.end();
    await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
    // A complete close, not only of one direction: the next bytes fail.
    await vi.waitUntil(() => (origin.send("x"), origin.socket.destroyed), WAIT_OPTIONS);
  });

  test("that resets its connection has left", async () => {
    const visitor = await visit();
    visitor.send(GET);
    const origin = await server();
    await origin.waitFor("\r\n\r\n");
    visitor.socket.resetAndDestroy();
    await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
  });

  test("that reads an early answer gets all of it while it is still sending", async () => {
    const visitor = await visit();
    visitor.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 20000000\r\n\r\n");
    const origin = await server();
    await origin.waitFor("\r\n\r\n");
    origin.socket.pause();
    const answer = `HTTP/1.1 413 Too Large\r\nContent-Length: 100000\r\n\r\n${"a".repeat(100_000)}`;
    // Sent and closed while the visitor's bytes are unread: a failed write must not discard the answer.
    origin.socket.end(answer);
    origin.socket.destroySoon();
    for (let sent = 0; sent < 20_000_000; sent += 500_000) visitor.send("b".repeat(500_000));
    await visitor.waitFor(answer);
    visitor.socket.end();
    await untilClosed(visitor);
  });

  test("sends a request again that crossed the server's close of an idle connection", async () => {
    const visitor = await visit();
    visitor.send(GET);
    const first = await server();
    await first.waitFor("\r\n\r\n");
    first.send(OK);
    await visitor.waitFor(OK);
    first.socket.pause();
    visitor.send(GET);
    await vi.waitUntil(
      () => first.socket.readableLength > 0 || first.received.length > 0,
      WAIT_OPTIONS,
    );
    first.socket.destroy();
    const second = await server(1);
    await second.waitFor(`GET / HTTP/1.1\r\n${CF_BLOB_FIELD}`);
    second.send(OK);
    await visitor.waitFor(OK + OK);
  });

  test("gets 503 for a request with effects that the server did not answer", async () => {
    const visitor = await visit();
    visitor.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na");
    const origin = await server();
    await origin.waitFor("\r\n\r\na");
    origin.socket.destroy();
    await visitor.waitFor('"error":"unavailable"');
    expect(visitor.received).toMatch(/^HTTP\/1.1 503 /);
    expect(arrived).toHaveLength(1);
  });
});

describe("another protocol", () => {
  const ACCEPTED = "HTTP/1.1 101 Switching Protocols\r\n\r\n";

  test("begins when the server accepts it, and bytes pass unchanged from then on", async () => {
    const visitor = await visit();
    visitor.send(UPGRADE + GET);
    const origin = await server();
    await origin.waitFor("\r\n\r\n");
    expect(origin.received.endsWith("websocket\r\n\r\n")).toBe(true);
    origin.send("HTTP/1.1 10");
    origin.send(`${ACCEPTED.slice(11)}hello`);
    await visitor.waitFor(`${ACCEPTED}hello`);
    await origin.waitFor(`\r\n\r\n${GET}`);
    visitor.socket.end();
    await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
  });

  test("does not begin when the server refuses: the next request has the added header", async () => {
    const visitor = await visit();
    visitor.send(UPGRADE + GET);
    const origin = await server();
    await origin.waitFor("\r\n\r\n");
    origin.send(OK);
    await origin.waitFor(`GET / HTTP/1.1\r\n${CF_BLOB_FIELD}Host: a\r\n\r\n`);
  });

  test("does not begin by what an earlier answer contains", async () => {
    const visitor = await visit();
    visitor.send(GET);
    const first = await server();
    await first.waitFor("\r\n\r\n");
    first.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    await visitor.waitFor("1000");
    visitor.send(UPGRADE + GET);
    const second = await server(1);
    await second.waitFor("websocket");
    first.send(ACCEPTED);
    second.send(OK);
    await second.waitFor(`GET / HTTP/1.1\r\n${CF_BLOB_FIELD}Host: a\r\n\r\n`);
    expect(visitor.received).not.toContain("101");
  });
});

describe("a connection ends", () => {
  test.each([
    ["that is no HTTP", "hello\r\n\r\n", 400],
    [
      "with a length and an encoding",
      `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
    ],
    ["without a Host", "GET / HTTP/1.1\r\n\r\n", 400],
    ["with another encoding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501],
    ["for another server", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 405],
    ["with a head that does not end", `GET / HTTP/1.1\r\nX: ${"a".repeat(HEAD_MAX_BYTES)}`, 431],
    [
      "with too many header fields",
      `GET / HTTP/1.1\r\nHost: a\r\n${"X:\r\n".repeat(256)}\r\n`,
      431,
    ],
  ])("after a request %s", async (_, text, status) => {
    const visitor = await visit();
    visitor.send(text);
    await vi.waitUntil(() => visitor.hasEnded, WAIT_OPTIONS);
    expect(visitor.received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(visitor.received).toMatch(/\r\nunderpass-error: [a-z_]+\r\nunderpass-request-id: /);
    expect(arrived).toEqual([]);
  });

  test("after a body with a malformed chunk, in the middle of the request", async () => {
    const visitor = await visit();
    visitor.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    const origin = await server();
    await origin.waitFor("abc\r\n");
    visitor.send("x\r\n");
    await visitor.waitFor("HTTP/1.1 400");
    await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
  });

  test("whose first request takes too long", async () => {
    const [silent, slow] = [await visit(), await visit()];
    slow.send("GET / HTTP/1.1\r\nX: ");
    passTime(FIRST_HEAD_MAX_MS + 1);
    await Promise.all([silent.waitFor("HTTP/1.1 408"), slow.waitFor("HTTP/1.1 408")]);
    passTime(FIRST_HEAD_MAX_MS);
    await vi.waitUntil(() => closed === 2, WAIT_OPTIONS);
  });

  test("whose upload pauses for too long", async () => {
    const visitor = await visit();
    visitor.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na");
    const origin = await server();
    await origin.waitFor("\r\n\r\na");
    passTime(BODY_PAUSE_MAX_MS - 1_000);
    expect(visitor.received).toBe("");
    passTime(BODY_PAUSE_MAX_MS + 1_000);
    await visitor.waitFor("HTTP/1.1 408");
  });

  test("whose visitor reads nothing, which stops the server from sending more", async () => {
    const visitor = await visit();
    visitor.socket.pause();
    visitor.send(GET);
    const origin = await server();
    await origin.waitFor("\r\n\r\n");
    let sent = 0;
    const chunk = Buffer.alloc(1024 * 1024);
    while (origin.socket.write(chunk) || sent < 4) sent += 1;
    origin.send(OK);
    await vi.waitUntil(() => !connections[0]!.isFlushed, WAIT_OPTIONS);
    expect(origin.socket.writableLength).toBeGreaterThan(0);
    passTime(UNREAD_MAX_MS + 1_000);
    await vi.waitUntil(() => closed === 1, WAIT_OPTIONS);
  });
});

describe("the WebSocket of a program, such as an agent,", () => {
  const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n";
  /** A frame of a binary message, or of its continuation, with a mask of zeros. */
  const buildPart = (bytes: number, opcode: 0 | 2, isFinal: boolean) =>
    String.fromCharCode((isFinal ? 0x80 : 0) | opcode, 0x80 | 126, bytes >> 8, bytes & 255) +
    "\0\0\0\0" +
    "a".repeat(bytes);

  async function connectProgram(index: number): Promise<[ConnectionEnd, ConnectionEnd]> {
    const program = await visit();
    program.send(UPGRADE);
    const origin = await server(index);
    await origin.waitFor("websocket");
    origin.send(SWITCHED);
    await program.waitFor("101");
    return [program, origin];
  }

  test("passes unchanged, and may hold a share of the memory for incomplete messages", async () => {
    const [program, origin] = await connectProgram(0);
    const message = buildPart(900, 2, false) + buildPart(90, 0, true);
    for (let n = 0; n < 4; n += 1) program.send(message);
    const [another, anotherOrigin] = await connectProgram(1);
    another.send(message + buildPart(900, 2, false));
    await Promise.all([origin.waitFor(message.repeat(4)), anotherOrigin.waitFor(message)]);
    expect([program.isClosed, another.isClosed]).toEqual([false, false]);
  });

  /** Sends more than the program, which reads nothing, and the kernel take. */
  async function fill(program: ConnectionEnd, origin: ConnectionEnd): Promise<void> {
    program.socket.pause();
    const chunk = Buffer.alloc(1024 * 1024);
    let sent = 0;
    while (origin.socket.write(chunk) || sent < 8) sent += 1;
    await vi.waitUntil(() => !connections[0]!.isFlushed, WAIT_OPTIONS);
  }

  test("is not read from while it reads nothing, and loses nothing by that", async () => {
    const [program, origin] = await connectProgram(0);
    await fill(program, origin);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 10 * PROGRAM_STALLED_MS });
    const messages = buildPart(100, 2, true).repeat(200_000);
    const before = origin.received.length;
    program.send(messages);
    const other = await visit();
    for (let n = 1; n <= 20; n += 1) {
      other.send(GET);
      const answered = await server(1);
      await vi.waitUntil(() => answered.received.split("GET ").length > n, WAIT_OPTIONS);
      answered.send(OK);
      await vi.waitUntil(() => other.received.split("200 OK").length > n, WAIT_OPTIONS);
    }
    expect(origin.received.length - before).toBeLessThan(messages.length / 2);
    vi.useRealTimers();
    program.socket.resume();
    await vi.waitUntil(() => origin.received.length - before === messages.length, WAIT_OPTIONS);
  });

  test("is reset when it has read nothing for a minute", async () => {
    const [program, origin] = await connectProgram(0);
    await fill(program, origin);
    passTime(PROGRAM_UNREAD_MAX_MS - 1_000);
    expect(closed).toBe(0);
    passTime(PROGRAM_UNREAD_MAX_MS + 1_000);
    await vi.waitUntil(() => closed === 1, WAIT_OPTIONS);
  });

  test("is reset when its source holds more incomplete messages", async () => {
    const [first] = await connectProgram(0);
    const [second, origin] = await connectProgram(1);
    first.send(buildPart(900, 2, false));
    await arrived[0]!.waitFor("a".repeat(900));
    second.send(buildPart(200, 2, false));
    await untilClosed(second);
    await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
    expect(first.isClosed).toBe(false);
  });
});
