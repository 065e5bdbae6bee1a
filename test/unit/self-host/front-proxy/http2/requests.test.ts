/** Requests of a visitor with HTTP/2 through the front proxy, to a server that each test plays. */
import { once } from "node:events";
import type {
  ClientHttp2Session,
  ClientHttp2Stream,
  IncomingHttpHeaders,
  OutgoingHttpHeaders,
} from "node:http2";
import { constants } from "node:http2";
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { HEAD_MAX_BYTES } from "../../../../../self-host/front-proxy/http1/request-head.ts";
import {
  createSessionOptions,
  SESSION_WINDOW_BYTES,
} from "../../../../../self-host/front-proxy/http2/session-options.ts";
import { UNREAD_BODIES_MAX_BYTES } from "../../../../../self-host/front-proxy/limits.ts";
import type { ConnectionEnd } from "../../../../harness/connection-end.ts";
import {
  API_HOST,
  CF_BLOB_FIELD,
  FrontProxyStage,
  OK,
} from "../../../../harness/front-proxy-stage.ts";
import { WAIT_OPTIONS } from "../../../../harness/timeouts.ts";

let stage: FrontProxyStage;
let client: ClientHttp2Session;

beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterAll(() => stage.stop());
afterEach(() => stage.clear());

/** @returns a stream of the only client. */
async function request(
  headers: OutgoingHttpHeaders,
  options?: { endStream: boolean },
): Promise<ClientHttp2Stream> {
  if (stage.sessions.length === 0) client = await stage.visitWithHttp2();
  const stream = client.request({ ":authority": "a", ...headers }, options);
  stream.on("error", () => undefined);
  return stream;
}

async function readResponse(stream: ClientHttp2Stream) {
  const [headers] = (await once(stream, "response")) as [
    IncomingHttpHeaders & { ":status": number },
  ];
  const body = Buffer.concat(await stream.toArray()).toString("latin1");
  return { status: headers[":status"], headers, body };
}

let sent = 0;

/** Answers a request, which must be different from all others. @returns the connection to the server, and the response. */
async function exchange(
  headers: OutgoingHttpHeaders,
  response = OK,
): Promise<{ server: ConnectionEnd } & Awaited<ReturnType<typeof readResponse>>> {
  const path = String(headers[":path"] ?? `/${(sent += 1)}`);
  const stream = await request({ ...headers, ":path": path });
  const isAtServer = ({ received }: ConnectionEnd) => received.includes(` ${path} `);
  await vi.waitUntil(() => stage.arrived.some(isAtServer), WAIT_OPTIONS);
  const server = stage.arrived.find(isAtServer)!;
  server.send(response);
  return { server, ...(await readResponse(stream)) };
}

test("a request is forwarded as one of HTTP/1.1, without fields of the connection, and with all cookies in one", async () => {
  const { server, status, body } = await exchange({
    ":path": "/a?b=c",
    cookie: ["a=1", "b=2"],
    te: "trailers",
    "x-name": "\xe9",
  });
  expect([status, body]).toEqual([200, "ok"]);
  expect(server.received).toBe(
    `GET /a?b=c HTTP/1.1\r\n${CF_BLOB_FIELD}host: a\r\nx-name: \xe9\r\ncookie: a=1; b=2\r\n\r\n`,
  );
});

test("requests of one session go to the host that each of them names", async () => {
  const { server } = await exchange({ ":authority": "b:8443" });
  expect(server.received).toContain("host: b:8443\r\n");
  const stream = await request({ ":authority": API_HOST });
  await vi.waitUntil(() => stage.arrivedAtApi.length === 1, WAIT_OPTIONS);
  stage.arrivedAtApi[0]!.send(OK);
  expect((await readResponse(stream)).status).toBe(200);
  expect(stage.sessions).toHaveLength(1);
});

test("requests after each other use the same connection to the server, and those at the same time do not", async () => {
  const { server } = await exchange({});
  await vi.waitUntil(async () => (await exchange({})).server === server, WAIT_OPTIONS);
  const count = stage.arrived.length;
  const streams = [await request({}), await request({})];
  await stage.server(count);
  for (const stream of streams) stream.close();
});

test("a response loses only fields of the connection, and keeps repeated ones and other bytes", async () => {
  const { status, headers, body } = await exchange(
    {},
    "HTTP/1.1 404 Nope\r\nConnection: keep-alive, x\r\nKeep-Alive: 5\r\nHTTP2-Settings: a\r\n" +
      "Transfer-Encoding: chunked\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nAge: 1\r\nAge: 2\r\nX-Name: \xe9 \r\nDate: now\r\n\r\n" +
      "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n",
  );
  expect([status, body]).toEqual([404, "abcde"]);
  expect(Object.fromEntries(Object.entries(headers))).toEqual({
    ":status": 404,
    "set-cookie": ["a=1", "b=2"],
    age: "1",
    "x-name": "\xe9",
    date: "now",
  });
});

test.each([
  ["HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 200],
  ["GET", "HTTP/1.1 204 No Content\r\n\r\n", 204],
  ["GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 304],
  ["GET", "HTTP/1.1 205 Reset Content\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 205],
  ["GET", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200],
])("a response without a body ends with its head: %s %j", async (method, response, status) => {
  const answer = await exchange({ ":method": method }, response);
  expect([answer.status, answer.body]).toEqual([status, ""]);
  expect((await exchange({})).body).toBe("ok");
});

test("informational responses precede the final one", async () => {
  const stream = await request({ ":method": "POST", "content-length": 2 });
  const informational: IncomingHttpHeaders[] = [];
  stream.on("headers", (headers: IncomingHttpHeaders) => informational.push({ ...headers }));
  const server = await stage.server();
  await server.waitFor("\r\n\r\n");
  server.send(
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\nLink: b\r\n\r\n",
  );
  await vi.waitUntil(() => informational.length === 2, WAIT_OPTIONS);
  expect(informational).toMatchObject([{ ":status": 100 }, { ":status": 103, link: "a, b" }]);
  stream.end("hi");
  await server.waitFor("\r\n\r\nhi");
  server.send(OK);
  expect((await readResponse(stream)).status).toBe(200);
});

test("a visitor that waits with the body of its request is invited to send it", async () => {
  const stream = await request({ ":method": "POST", expect: "100-continue", "content-length": 2 });
  await once(stream, "continue");
  stream.end("hi");
  const server = await stage.server();
  await server.waitFor("\r\n\r\nhi");
  server.send(OK);
  expect((await readResponse(stream)).status).toBe(200);
});

test("a body of known length is forwarded as it is, and another one in the chunked coding, piece by piece", async () => {
  const known = await request({ ":method": "PUT", "content-length": 4 }, { endStream: false });
  known.write("ab");
  await (await stage.server()).waitFor("content-length: 4\r\n\r\nab");
  known.end("cd");
  await stage.arrived[0]!.waitFor("abcd");
  const unknown = await request({ ":method": "PUT" }, { endStream: false });
  unknown.write("ab");
  const server = await stage.server(1);
  await server.waitFor("transfer-encoding: chunked\r\n\r\n2\r\nab\r\n");
  unknown.end("cde");
  await server.waitFor("2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n");
  const responses = Promise.all([readResponse(known), readResponse(unknown)]);
  for (const end of stage.arrived) end.send(OK);
  expect((await responses).map(({ status }) => status)).toEqual([200, 200]);
});

test("a response arrives piece by piece, and ends with the connection if it has no length", async () => {
  const stream = await request({});
  const server = await stage.server();
  await server.waitFor("\r\n\r\n");
  server.send("HTTP/1.1 200 OK\r\n\r\ndata: 1\n\n");
  let body = "";
  stream.on("data", (data: Buffer) => (body += data.toString()));
  await vi.waitUntil(() => body === "data: 1\n\n", WAIT_OPTIONS);
  server.socket.end("data: 2\n\n");
  await vi.waitUntil(() => stream.destroyed, WAIT_OPTIONS);
  expect([body, stream.rstCode]).toEqual(["data: 1\n\ndata: 2\n\n", constants.NGHTTP2_NO_ERROR]);
});

test.each([
  "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
  // A status that HTTP/2 does not have.
  "HTTP/1.1 777 OK\r\nContent-Length: 3\r\n\r\nabc",
])("a response that is cut resets the stream, and the session goes on: %j", async (response) => {
  const stream = await request({});
  const server = await stage.server();
  await server.waitFor("\r\n\r\n");
  server.socket.end(response);
  stream.resume();
  await vi.waitUntil(() => stream.destroyed, WAIT_OPTIONS);
  expect(stream.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
  expect((await exchange({})).status).toBe(200);
});

test.each([
  [{}, { endStream: true }],
  [{ ":method": "POST" }, { endStream: false }],
  [{ ":method": "HEAD" }, { endStream: true }],
] as const)(
  "a visitor who cancels a request ends it at the server: %j",
  async (headers, options) => {
    const stream = await request(headers, options);
    const server = await stage.server();
    await server.waitFor("\r\n\r\n");
    stream.close(constants.NGHTTP2_CANCEL);
    await vi.waitUntil(() => server.isClosed || server.hasEnded, WAIT_OPTIONS);
    expect((await exchange({})).status).toBe(200);
  },
);

test("a body goes on to the server after an early response", async () => {
  const stream = await request({ ":method": "POST" }, { endStream: false });
  const server = await stage.server();
  await server.waitFor("\r\n\r\n");
  server.send(OK);
  expect((await readResponse(stream)).status).toBe(200);
  stream.end("late");
  await server.waitFor("4\r\nlate\r\n0\r\n\r\n");
});

test("refusals of the front proxy are responses, and the session goes on", async () => {
  const invalid = await readResponse(await request({ ":authority": "a..b" }));
  expect([invalid.status, JSON.parse(invalid.body)]).toMatchObject([
    400,
    { error: "invalid_host" },
  ]);
  expect(invalid.headers.connection).toBeUndefined();
  expect(invalid.headers["x-content-type-options"]).toBe("nosniff");
  const connect = client.request({ ":method": "CONNECT", ":authority": "a:443" });
  connect.on("error", () => undefined);
  const refused = await readResponse(connect);
  expect([refused.status, refused.headers.allow]).toEqual([405, expect.stringMatching(/^GET, /)]);
  const third = "x".repeat(HEAD_MAX_BYTES / 3);
  const large = await request({ "x-a": third, "x-b": third, "x-c": third });
  expect((await readResponse(large)).status).toBe(431);
  const lost = await request({});
  const server = await stage.server();
  await server.waitFor("\r\n\r\n");
  server.socket.destroy();
  const unavailable = await readResponse(lost);
  expect([unavailable.status, unavailable.headers["retry-after"]]).toEqual([503, "1"]);
  expect((await exchange({})).status).toBe(200);
});

test("a refused upload is answered, and its rest is not wanted", async () => {
  const stream = await request({ ":method": "POST", ":authority": "a..b" }, { endStream: false });
  expect((await readResponse(stream)).status).toBe(400);
  await vi.waitUntil(() => stream.destroyed, WAIT_OPTIONS);
  expect(stream.rstCode).toBe(constants.NGHTTP2_NO_ERROR);
});

test("uploads have a window for long paths, all of a session together too", async () => {
  const session = await stage.visitWithHttp2();
  await vi.waitUntil(() => session.state.remoteWindowSize === SESSION_WINDOW_BYTES, WAIT_OPTIONS);
  expect(session.remoteSettings.initialWindowSize).toBe(512 * 1024);
});

test("the bodies of all requests that a session may have find room while they wait", () => {
  const { maxConcurrentStreams, initialWindowSize } = createSessionOptions(Infinity).settings!;
  expect(maxConcurrentStreams! * initialWindowSize!).toBeLessThan(UNREAD_BODIES_MAX_BYTES / 2);
});
