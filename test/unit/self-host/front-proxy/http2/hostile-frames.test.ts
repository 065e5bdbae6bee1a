/** What a hostile visitor can send with HTTP/2, frame by frame. */
import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { MINUTE_MS } from "../../../../../shared/time.ts";
import {
  FIRST_HEAD_MAX_MS,
  IDLE_MAX_MS,
  UNREAD_MAX_MS,
  UPSTREAM_IDLE_MAX_MS,
} from "../../../../../self-host/front-proxy/limits.ts";
import { REQUESTS_IN_FLIGHT_MAX } from "../../../../../self-host/front-proxy/queue/workerd-queues.ts";
import type { ConnectionEnd } from "../../../../harness/connection-end.ts";
import {
  CF_BLOB_FIELD,
  CONNECTIONS_MAX,
  FrontProxyStage,
  GET as GET_TEXT,
  OK,
  UNREAD_BODIES_MAX_BYTES,
} from "../../../../harness/front-proxy-stage.ts";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  ERROR,
  formatFields,
  formatFrame,
  STATUS_200,
  STATUS_400,
  TYPE,
  type FrameEnd,
} from "../../../../harness/formats/http2-frames.ts";
import { WAIT_OPTIONS } from "../../../../harness/timeouts.ts";

/** The entry of `SETTINGS_INITIAL_WINDOW_SIZE` (RFC 9113 §6.5.2), with the value 0. */
const NO_WINDOW = Buffer.from([0, 4, 0, 0, 0, 0]);
/** A sixth of what is sent. */
const BUFFERS_MAX_BYTES = 8 * 1024 * 1024;
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;
let stage: FrontProxyStage;

beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterAll(() => stage.stop());
afterEach(() => stage.clear());

function waitForHead(visitor: FrameEnd, stream: number) {
  return visitor.waitFor(({ type, stream: id }) => type === TYPE.headers && id === stream);
}

/** @returns the bytes of all buffers that are still in use. */
function measureBuffers(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

/** Another request of the same session is answered. */
async function expectToGoOn(visitor: FrameEnd, stream: number): Promise<void> {
  const isAtServer = ({ received }: ConnectionEnd) => received.includes(`/stream-${stream} `);
  visitor.request(stream, { ":path": `/stream-${stream}` });
  await vi.waitUntil(() => stage.arrived.some(isAtServer), WAIT_OPTIONS);
  stage.arrived.find(isAtServer)!.send(OK);
  expect((await waitForHead(visitor, stream)).payload[0]).toBe(STATUS_200);
}

const GET = [
  [":method", "GET"],
  [":scheme", "https"],
  [":authority", "a"],
  [":path", "/"],
] as const;

test.each<[string, (readonly [string, string])[]]>([
  ["a name in capitals", [...GET, ["Host", "b"]]],
  ["a path with a space", [...GET.slice(0, 3), [":path", "/ HTTP/1.1"]]],
  ["a path with a line break", [...GET.slice(0, 3), [":path", "/\r\nx: y"]]],
  ["an absolute path", [...GET.slice(0, 3), [":path", "http://b/"]]],
  [
    "an absolute path of another scheme",
    [GET[0], [":scheme", "x"], GET[2], [":path", "http://b/"]],
  ],
  ["an empty path", [...GET.slice(0, 3), [":path", ""]]],
  ["two paths", [...GET, [":path", "/b"]]],
  ["no path", GET.slice(0, 3)],
  ["an authority with a line break", [...GET.slice(0, 2), [":authority", "a\r\nb"], GET[3]]],
  ["a Host that differs", [...GET, ["host", "b"]]],
  ["two Hosts", [...GET, ["host", "a"], ["host", "a"]]],
  ["no host at all", [...GET.slice(0, 2), GET[3]]],
  ["a method with a space", [[":method", "GET / HTTP/1.1"], ...GET.slice(1)]],
  ["a pseudo-field after others", [...GET.slice(0, 3), ["x", "y"], GET[3]]],
  ["an unknown pseudo-field", [...GET, [":protocol", "websocket"]]],
  ["a field of the connection", [...GET, ["connection", "close"]]],
  ["Transfer-Encoding", [...GET, ["transfer-encoding", "chunked"]]],
  ["Upgrade", [...GET, ["upgrade", "websocket"]]],
  ["TE", [...GET, ["te", "gzip"]]],
  ["two lengths", [...GET, ["content-length", "0"], ["content-length", "5"]]],
  ["a length and no body", [...GET, ["content-length", "5"]]],
])("a request with %s never reaches the server", async (_, fields) => {
  const visitor = await stage.visitWithFrames();
  visitor.request(1, fields);
  const answer = await visitor.waitFor(
    ({ type, stream }) => stream === 1 && (type === TYPE.reset || type === TYPE.headers),
  );
  expect(answer.type === TYPE.reset ? answer.payload.readUInt32BE() : answer.payload[0]).toBeOneOf([
    ERROR.protocol,
    STATUS_400,
  ]);
  await expectToGoOn(visitor, 3);
  expect(stage.arrived).toHaveLength(1);
});

/** RFC 9113 §8.2.1 also allows to refuse the request, which nghttp2 does only for other fields. */
test.each([
  ["a line break in its value", "x", "a\r\nhost: b"],
  ["a null byte in its value", "x", "a\0"],
  ["a line break in its name", "x\r\nhost", "b"],
  ["a colon in its name", "host:b", "a"],
  ["a space before its value", "x", " a"],
])("a field with %s is not forwarded", async (_, name, value) => {
  const visitor = await stage.visitWithFrames();
  visitor.request(1, [...GET, [name, value]]);
  const server = await stage.server();
  await server.waitFor("\r\n\r\n");
  expect(server.received).toBe(`GET / HTTP/1.1\r\n${CF_BLOB_FIELD}host: a\r\n\r\n`);
});

test.each([
  ["longer", "abcdef"],
  ["shorter", "ab"],
])("a body %s than its length is not forwarded as another request", async (_, body) => {
  const visitor = await stage.visitWithFrames();
  visitor.request(1, { ":method": "POST", "content-length": "4" }, 0);
  const server = await stage.server();
  await server.waitFor("\r\n\r\n");
  visitor.send(TYPE.data, END_STREAM, 1, Buffer.from(body));
  await vi.waitUntil(() => server.hasEnded, WAIT_OPTIONS);
  expect(visitor.frames.some(({ type }) => type === TYPE.headers)).toBe(false);
  expect(server.received.split("\r\n\r\n")[1]!.length).toBeLessThanOrEqual(4);
});

test.each(["before", "after"])(
  "a body that is cut %s the response is not completed at the server, with whatever code it is cut",
  async (moment) => {
    const visitor = await stage.visitWithFrames();
    visitor.request(1, { ":method": "POST" }, 0);
    visitor.send(TYPE.data, 0, 1, Buffer.from("abc"));
    const server = await stage.server();
    await server.waitFor("3\r\nabc\r\n");
    if (moment === "after") {
      server.send(OK);
      await visitor.waitFor(({ stream, flags }) => stream === 1 && flags === END_STREAM);
    }
    visitor.send(TYPE.reset, 0, 1, Buffer.from([0, 0, 0, ERROR.none]));
    await vi.waitUntil(() => server.hasEnded, WAIT_OPTIONS);
    expect(server.received).not.toContain("0\r\n\r\n");
  },
);

test("trailers of a request are not forwarded", async () => {
  const visitor = await stage.visitWithFrames();
  visitor.request(1, { ":method": "POST" }, 0);
  visitor.send(TYPE.data, 0, 1, Buffer.from("abc"));
  const server = await stage.server();
  await server.waitFor("3\r\nabc\r\n");
  visitor.send(TYPE.headers, END_HEADERS | END_STREAM, 1, formatFields([["host", "b"]]));
  await server.waitFor("abc\r\n0\r\n\r\n");
  server.send(OK);
  await waitForHead(visitor, 1);
});

test("requests beyond the limit of a source are answered with 503, and count until they end", async () => {
  const [first, second] = [await stage.visitWithFrames(), await stage.visitWithFrames()];
  // The first request of a session is counted by its connection. A session may have half.
  const half = CONNECTIONS_MAX / 2;
  for (const visitor of [first, second]) {
    for (let index = 0; index < half; index += 1) visitor.request(1 + 2 * index);
  }
  await stage.server(2 * half - 1);
  expect(stage.admitted).toBe(2 * half - 2);
  const third = await stage.visitWithFrames();
  for (const stream of [1, 3, 5, 7]) third.request(stream);
  await waitForHead(third, 7);
  await stage.server(2 * half + 2);
  // Two of them found a place besides the first one.
  expect(stage.arrived).toHaveLength(2 * half + 3);
  for (const server of stage.arrived) server.send(OK);
  // Their connections to the server are kept for another request, but not for long.
  await vi.waitUntil(() => {
    stage.passTime(UPSTREAM_IDLE_MAX_MS + 1_000);
    return stage.admitted === 0;
  }, WAIT_OPTIONS);
});

test("requests beyond a limit that the visitor does not know yet can be repeated, and the session goes on", async () => {
  const visitor = await stage.visitWithFrames({ acknowledges: false });
  const count = CONNECTIONS_MAX / 2;
  for (let index = 0; index <= count; index += 1) visitor.request(1 + 2 * index);
  expect(await visitor.waitForError(1 + 2 * count)).toBe(ERROR.refusedStream);
  await stage.server(count - 1);
  visitor.send(TYPE.settings, ACK, 0);
  for (const server of stage.arrived) server.send(OK);
  await waitForHead(visitor, 1 + 2 * (count - 1));
  await expectToGoOn(visitor, 101);
});

/** nghttp2 does not refuse only the request. No visitor that keeps the rules does this: a request ends later for it than for nghttp2. */
test("more requests at the same time than the visitor knows that a session may have end it", async () => {
  const visitor = await stage.visitWithFrames();
  for (let index = 0; index <= CONNECTIONS_MAX / 2; index += 1) visitor.request(1 + 2 * index);
  expect(await visitor.waitForError(0)).toBe(ERROR.protocol);
  await vi.waitUntil(() => stage.closed === stage.connections.length, WAIT_OPTIONS);
});

test("many requests that are reset at once end the session, and hold nothing", async () => {
  const visitor = await stage.visitWithFrames();
  for (let index = 0; index < 3_000 && !visitor.isClosed; index += 1) {
    visitor.request(1 + 2 * index);
    visitor.send(TYPE.reset, 0, 1 + 2 * index, Buffer.from([0, 0, 0, ERROR.cancel]));
  }
  await visitor.waitForError(0);
  await vi.waitUntil(() => visitor.isClosed, WAIT_OPTIONS);
  await vi.waitUntil(() => stage.closed === stage.connections.length, WAIT_OPTIONS);
  expect(stage.admitted).toBe(0);
});

test.each([
  ["CONTINUATION frames", TYPE.headers, TYPE.continuation, 1],
  ["settings", TYPE.settings, TYPE.settings, 0],
  ["pings", TYPE.ping, TYPE.ping, 0],
])(
  "%s without end, whose answers are not read, end the session",
  async (_, first, next, stream) => {
    const visitor = await stage.visitWithFrames();
    visitor.socket.pause();
    const payload = next === TYPE.ping ? Buffer.alloc(8) : Buffer.alloc(0);
    visitor.send(first, 0, stream, payload);
    const frames = Buffer.concat(
      Array.from({ length: 1_000 }, () => formatFrame(next, 0, stream, payload)),
    );
    while (stage.closedSessions === 0) {
      visitor.socket.write(frames);
      await setImmediate();
    }
    // Connections of an earlier test may arrive late.
    expect(stage.arrived.map(({ received }) => received).join("")).toBe("");
  },
);

/** Other requests keep workerd busy, so that bodies wait. @returns a function that ends this. */
async function makeBusy(): Promise<() => void> {
  const probe = Promise.withResolvers<void>();
  stage.probe = () => probe.promise;
  for (let index = 0; index < REQUESTS_IN_FLIGHT_MAX; index += 1)
    (await stage.visit()).send(GET_TEXT);
  await stage.server(REQUESTS_IN_FLIGHT_MAX - 1);
  return probe.resolve;
}

test("bodies in tiny frames that wait are bounded", async () => {
  const endBusyTime = await makeBusy();
  const visitor = await stage.visitWithFrames();
  visitor.request(1, { ":method": "POST" }, 0);
  const frame = formatFrame(TYPE.data, 0, 1, Buffer.alloc(64));
  const frames = Array.from({ length: UNREAD_BODIES_MAX_BYTES / 512 }, () => frame);
  visitor.socket.write(Buffer.concat(frames));
  expect(await visitor.waitForError(1)).toBe(ERROR.enhanceYourCalm);
  endBusyTime();
});

test("tiny frames that wait do not keep in memory what has arrived together with them", async () => {
  const endBusyTime = await makeBusy();
  const visitor = await stage.visitWithFrames();
  visitor.request(1, { ":method": "POST" }, 0);
  const tiny = formatFrame(TYPE.data, 0, 1, Buffer.from("x"));
  const ignored = formatFrame(TYPE.unknown, 0, 0, Buffer.alloc(16_000));
  const bytes = Buffer.concat([tiny, ignored, ignored, ignored]);
  const before = measureBuffers();
  for (let index = 0; index < 1_000; index += 1)
    await new Promise((resolve) => visitor.socket.write(bytes, resolve));
  await visitor.ping();
  // Node.js frees some buffers only after the collection.
  await vi.waitUntil(() => measureBuffers() - before < BUFFERS_MAX_BYTES, WAIT_OPTIONS);
  expect(visitor.frames.some(({ type }) => type === TYPE.reset)).toBe(false);
  endBusyTime();
});

test("a visitor who lets nothing be sent is reset after a while, and until then the server is not read from", async () => {
  const visitor = await stage.visitWithFrames();
  visitor.send(TYPE.settings, 0, 0, NO_WINDOW);
  visitor.request(1);
  const server = await stage.server();
  await server.waitFor("\r\n\r\n");
  server.send("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n");
  await waitForHead(visitor, 1);
  const sent = server.socket.write(Buffer.alloc(100_000_000));
  expect(sent).toBe(false);
  await vi.waitUntil(() => !stage.connections[0]!.isFlushed, WAIT_OPTIONS);
  stage.passTime(UNREAD_MAX_MS - 1_000);
  expect(stage.closed).toBe(0);
  expect(server.socket.writableLength).toBeGreaterThan(90_000_000);
  stage.passTime(UNREAD_MAX_MS + 1_000);
  expect(await visitor.waitForError(1)).toBe(ERROR.internal);
  await vi.waitUntil(() => server.isClosed, WAIT_OPTIONS);
});

test("a session without a request ends as a connection of HTTP/1.1 does, also one that sends pings", async () => {
  const [silent, used] = [await stage.visitWithFrames(), await stage.visitWithFrames()];
  await expectToGoOn(used, 1);
  expect(stage.sessions[1]!.metrics.bytesReceived).toBeGreaterThan(0);
  expect(stage.sessions[1]!.metrics.bytesSent).toBeGreaterThan(0);
  used.send(TYPE.ping, 0, 0, Buffer.alloc(8));
  stage.passTime(FIRST_HEAD_MAX_MS + 1_000);
  await vi.waitUntil(() => silent.isClosed, WAIT_OPTIONS);
  expect(used.isClosed).toBe(false);
  await vi.waitUntil(() => {
    stage.passTime(IDLE_MAX_MS + 1_000);
    return used.isClosed;
  }, WAIT_OPTIONS);
  expect(await used.waitForError(0)).toBe(ERROR.none);
});

test("a request that does not become complete does not keep its session open", async () => {
  const visitor = await stage.visitWithFrames();
  visitor.send(TYPE.headers, 0, 1, formatFields(GET));
  stage.passTime(FIRST_HEAD_MAX_MS + 1_000);
  await vi.waitUntil(() => visitor.isClosed, WAIT_OPTIONS);
});

test("a session that is closed, as at a stop of the server, still answers its running requests", async () => {
  const visitor = await stage.visitWithFrames();
  visitor.request(1);
  const server = await stage.server();
  await server.waitFor("\r\n\r\n");
  stage.sessions[0]!.close();
  expect(await visitor.waitForError(0)).toBe(ERROR.none);
  expect(stage.sessions[0]!.isComplete).toBe(false);
  server.send(OK);
  expect((await waitForHead(visitor, 1)).payload[0]).toBe(STATUS_200);
  await vi.waitUntil(() => visitor.isClosed, WAIT_OPTIONS);
  await vi.waitUntil(() => stage.sessions[0]!.isComplete, WAIT_OPTIONS);
});

test("a session that nghttp2 has given up does not outlive its visitor for long", async () => {
  const [visitor, other] = [await stage.visitWithFrames(), await stage.visitWithFrames()];
  for (const end of [visitor, other]) end.request(1);
  await stage.server(1);
  // The request has ended before.
  visitor.send(TYPE.data, 0, 1, Buffer.from("x"));
  await visitor.waitForError(0);
  visitor.socket.destroy();
  stage.passTime(MINUTE_MS + 1_000);
  const { payload } = await other.waitFor(({ type }) => type === TYPE.ping);
  other.send(TYPE.ping, ACK, 0, payload);
  await expectToGoOn(other, 3);
  stage.passTime(MINUTE_MS + UNREAD_MAX_MS + 2_000);
  await vi.waitUntil(() => stage.closedSessions > 0, WAIT_OPTIONS);
  await expectToGoOn(other, 5);
  expect(stage.closedSessions).toBe(1);
});
