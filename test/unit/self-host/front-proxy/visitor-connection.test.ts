/** A visitor's connection through the front proxy, to a server that each test plays. */
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import {
  BODY_PAUSE_MAX_MS,
  FIRST_HEAD_MAX_MS,
  HELD_MAX_MS,
  UNREAD_MAX_MS,
} from "../../../../self-host/front-proxy/limits.ts";
import {
  API_HOST,
  CF_BLOB_FIELD,
  FrontProxyStage,
  GET,
  OK,
  UPGRADE,
} from "../../../harness/front-proxy-stage.ts";
import type { ConnectionEnd } from "../../../harness/connection-end.ts";
import { DAY_MS } from "../../../../shared/time.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

const CLOSE = "Connection: close\r\n\r\n";
let stage: FrontProxyStage;

beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterAll(() => stage.stop());
afterEach(() => stage.clear());

describe("a visitor", () => {
  test("costs the server nothing before its first head is complete", async () => {
    const visitor = await stage.visit();
    for (const byte of GET.slice(0, -1)) visitor.send(byte);
    stage.passTime(FIRST_HEAD_MAX_MS - 1_000);
    expect(stage.arrived).toEqual([]);
    visitor.send(GET.slice(-1));
    await (await stage.server()).waitFor(`GET / HTTP/1.1\r\n${CF_BLOB_FIELD}Host: a\r\n\r\n`);
  });

  /** Each is cut where it is not complete yet. */
  test.each([
    ["GET", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", "k"],
    ["GET", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r", "\n"],
    ["GET", "HTTP/1.1 100 Continue\r\n\r\n", OK],
    ["HEAD", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n", "Content-Length: 9\r\n\r\n"],
    ["GET", "HTTP/1.1 204 No Content\r\n", "\r\n"],
    ["GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n", "\r\n"],
    ["GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n", "\r\n"],
    [
      "GET",
      "HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
      "0\r\n\r\n",
    ],
  ])(
    "sends its requests together: the next one goes on when the response has ended: %s %j",
    async (method, start, end) => {
      const visitor = await stage.visit();
      const post = "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
      visitor.send(`\r\n${GET.replace("GET", method)}${post}${GET}`);
      const origin = await stage.server();
      await origin.waitFor("\r\n\r\n");
      origin.send(start);
      // The proxy has read the start when it has received what follows here.
      const other = await stage.visit();
      other.send(GET);
      (await stage.server(1)).send(OK);
      await other.waitFor(OK);
      expect(origin.received).not.toContain("POST");
      origin.send(end);
      await origin.waitFor("\r\n\r\nabc");
      expect(origin.received.split(CF_BLOB_FIELD)).toHaveLength(3);
      origin.send(OK);
      await origin.waitFor(`\r\n\r\nabcGET / HTTP/1.1\r\n${CF_BLOB_FIELD}`);
      origin.send(OK);
      await visitor.waitFor(start + end + OK + OK);
    },
  );

  test("calls the API and visits a tunnel on one connection: each request goes to the Worker that handles it", async () => {
    const visitor = await stage.visit();
    const call = GET.replace("Host: a", `Host: ${API_HOST}`);
    visitor.send(call + GET + call);
    const answer = async (getArrived: () => ConnectionEnd[], index: number, host: string) => {
      await vi.waitUntil(() => getArrived().length > index, WAIT_OPTIONS);
      const server = getArrived()[index]!;
      await server.waitFor(`Host: ${host}\r\n\r\n`);
      server.send(OK);
      return server;
    };
    const first = await answer(() => stage.arrivedAtApi, 0, API_HOST);
    const second = await answer(() => stage.arrived, 0, "a");
    await answer(() => stage.arrivedAtApi, 1, API_HOST);
    await visitor.waitFor(OK + OK + OK);
    for (const server of [first, second]) {
      await vi.waitUntil(() => server.hasEnded, WAIT_OPTIONS);
      expect(server.received.match(/GET/g)).toHaveLength(1);
    }
  });

  test("that leaves with requests that wait is noticed in the end", async () => {
    const visitor = await stage.visit();
    visitor.send(GET + GET);
    await vi.waitUntil(
      () => stage.connections[0]!.metrics.bytesReceived === 2 * GET.length,
      WAIT_OPTIONS,
    );
    visitor.socket.end();
    stage.passTime(HELD_MAX_MS - 1_000);
    expect(stage.closed).toBe(0);
    stage.passTime(HELD_MAX_MS + 1_000);
    await vi.waitUntil(() => stage.closed === 1, WAIT_OPTIONS);
  });

  test("does not send a request again when the server is lost in the response before it", async () => {
    const visitor = await stage.visit();
    visitor.send(GET);
    const origin = await stage.server();
    await origin.waitFor("\r\n\r\n");
    origin.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc");
    await visitor.waitFor("abc");
    visitor.send(GET);
    await vi.waitUntil(
      () => stage.connections[0]!.metrics.bytesReceived === 2 * GET.length,
      WAIT_OPTIONS,
    );
    origin.socket.destroy();
    await vi.waitUntil(() => visitor.hasEnded, WAIT_OPTIONS);
    expect(stage.arrived).toHaveLength(1);
  });

  test.each([
    `GET / HTTP/1.1\r\nHost: a\r\n${CLOSE}`,
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n${CLOSE}ab`,
    "GET / HTTP/1.0\r\nHost: a\r\n\r\n",
  ])(
    "that sends its last request gets the end of the connection after the answer: %j",
    async (last) => {
      const visitor = await stage.visit();
      visitor.send(GET + last + GET);
      const origin = await stage.server();
      await origin.waitFor("\r\n\r\n");
      origin.send(OK);
      await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
      expect(origin.received.split(CF_BLOB_FIELD)).toHaveLength(3);
      origin.socket.end(OK, "latin1");
      await vi.waitUntil(() => visitor.hasEnded, WAIT_OPTIONS);
      expect(visitor.received).toBe(OK + OK);
    },
  );

  test("that sends its FIN before the answer has left: the server sees the connection closed", async () => {
    const visitor = await stage.visit();
    visitor.send(GET);
    const origin = await stage.server();
    await origin.waitFor("\r\n\r\n");
    visitor.socket.end();
    await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
    // A complete close, not only of one direction: the next bytes fail.
    await vi.waitUntil(() => (origin.send("x"), origin.socket.destroyed), WAIT_OPTIONS);
  });

  test("that resets its connection has left", async () => {
    const visitor = await stage.visit();
    visitor.send(GET);
    const origin = await stage.server();
    await origin.waitFor("\r\n\r\n");
    visitor.socket.resetAndDestroy();
    await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
  });

  test("sends a request again that crossed the server's close of an idle connection", async () => {
    const visitor = await stage.visit();
    visitor.send(GET);
    const first = await stage.server();
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
    const second = await stage.server(1);
    await second.waitFor(`GET / HTTP/1.1\r\n${CF_BLOB_FIELD}`);
    second.send(OK);
    await visitor.waitFor(OK + OK);
  });

  test("sends a request again once: after that, the server is down", async () => {
    const visitor = await stage.visit();
    visitor.send(GET);
    const first = await stage.server();
    await first.waitFor("\r\n\r\n");
    first.send(OK);
    await visitor.waitFor(OK);
    visitor.send(GET);
    await vi.waitUntil(() => first.received.split("\r\n\r\n").length === 3, WAIT_OPTIONS);
    first.socket.destroy();
    const second = await stage.server(1);
    await second.waitFor("\r\n\r\n");
    second.socket.destroy();
    await visitor.waitFor("HTTP/1.1 503 ");
    expect(stage.arrived).toHaveLength(2);
  });

  test("gets 503 for a request with effects that the server did not answer", async () => {
    const visitor = await stage.visit();
    visitor.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na");
    const origin = await stage.server();
    await origin.waitFor("\r\n\r\na");
    origin.socket.destroy();
    await visitor.waitFor('"error":"unavailable"');
    expect(visitor.received).toMatch(/^HTTP\/1.1 503 /);
    expect(stage.arrived).toHaveLength(1);
  });
});

describe("another protocol", () => {
  const ACCEPTED = "HTTP/1.1 101 Switching Protocols\r\n\r\n";

  test("begins when the server accepts it, and bytes pass unchanged from then on", async () => {
    const visitor = await stage.visit();
    visitor.send(UPGRADE + GET);
    const origin = await stage.server();
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
    const visitor = await stage.visit();
    visitor.send(UPGRADE + GET);
    const origin = await stage.server();
    await origin.waitFor("\r\n\r\n");
    origin.send(OK);
    await origin.waitFor(`GET / HTTP/1.1\r\n${CF_BLOB_FIELD}Host: a\r\n\r\n`);
  });

  test("does not begin by what an earlier answer contains", async () => {
    const visitor = await stage.visit();
    visitor.send(GET);
    const first = await stage.server();
    await first.waitFor("\r\n\r\n");
    first.send(`HTTP/1.1 200 OK\r\nContent-Length: ${ACCEPTED.length}\r\n\r\n`);
    await visitor.waitFor("200 OK");
    visitor.send(UPGRADE + GET);
    first.send(ACCEPTED);
    const second = await stage.server(1);
    await second.waitFor("websocket");
    second.send(OK);
    await second.waitFor(`GET / HTTP/1.1\r\n${CF_BLOB_FIELD}Host: a\r\n\r\n`);
    expect(first.received).not.toContain("websocket");
  });
});

describe("a connection ends", () => {
  const UPLOAD = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n";
  const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

  test.each(["", CONTINUE])(
    "after a body with a malformed chunk, in the middle of the request, which was answered %j",
    async (interim) => {
      const visitor = await stage.visit();
      visitor.send(UPLOAD);
      const origin = await stage.server();
      await origin.waitFor("abc\r\n");
      origin.send(interim);
      await visitor.waitFor(interim);
      visitor.send("x\r\n");
      await visitor.waitFor(`${interim}HTTP/1.1 400`);
      await vi.waitUntil(() => origin.hasEnded, WAIT_OPTIONS);
    },
  );

  test.each(["HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nabc", OK])(
    "after a body with a malformed chunk, and nothing is written into its response: %j",
    async (response) => {
      const visitor = await stage.visit();
      visitor.send(UPLOAD);
      const origin = await stage.server();
      await origin.waitFor("abc\r\n");
      origin.send(response);
      await visitor.waitFor(response);
      visitor.send("x\r\n");
      await vi.waitUntil(() => visitor.hasEnded && origin.hasEnded, WAIT_OPTIONS);
      expect(visitor.received).toBe(response);
    },
  );

  test("whose server is lost after an interim response, with the front proxy's own response", async () => {
    const visitor = await stage.visit();
    visitor.send(UPLOAD);
    const origin = await stage.server();
    await origin.waitFor("abc\r\n");
    origin.send(CONTINUE);
    await visitor.waitFor(CONTINUE);
    origin.socket.destroy();
    await visitor.waitFor(`${CONTINUE}HTTP/1.1 503 `);
  });

  test("whose first request takes too long", async () => {
    const [silent, slow] = [await stage.visit(), await stage.visit()];
    slow.send("GET / HTTP/1.1\r\nX: ");
    stage.passTime(FIRST_HEAD_MAX_MS + 1);
    await Promise.all([silent.waitFor("HTTP/1.1 408"), slow.waitFor("HTTP/1.1 408")]);
    stage.passTime(FIRST_HEAD_MAX_MS);
    await vi.waitUntil(() => stage.closed === 2, WAIT_OPTIONS);
  });

  test("but not one whose upload goes on while the clock is set", async () => {
    const visitor = await stage.visit();
    visitor.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\na");
    const origin = await stage.server();
    await origin.waitFor("\r\n\r\na");
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + DAY_MS });
    stage.passTime(1_000);
    vi.useRealTimers();
    visitor.send("b");
    await origin.waitFor("\r\n\r\nab");
    origin.send(OK);
    await visitor.waitFor(OK);
  });

  test("whose upload pauses for too long", async () => {
    const visitor = await stage.visit();
    visitor.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\na");
    const origin = await stage.server();
    await origin.waitFor("\r\n\r\na");
    stage.passTime(BODY_PAUSE_MAX_MS - 1_000);
    expect(visitor.received).toBe("");
    stage.passTime(BODY_PAUSE_MAX_MS + 1_000);
    await visitor.waitFor("HTTP/1.1 408");
  });

  test("whose visitor reads nothing, which stops the server from sending more", async () => {
    const visitor = await stage.visit();
    visitor.socket.pause();
    visitor.send(GET);
    const origin = await stage.server();
    await origin.waitFor("\r\n\r\n");
    origin.send(`HTTP/1.1 200 OK\r\nContent-Length: ${2 ** 40}\r\n\r\n`);
    let sent = 0;
    const chunk = Buffer.alloc(1024 * 1024);
    while (origin.socket.write(chunk) || sent < 4) sent += 1;
    origin.send(OK);
    await vi.waitUntil(() => !stage.connections[0]!.isFlushed, WAIT_OPTIONS);
    expect(origin.socket.writableLength).toBeGreaterThan(0);
    stage.passTime(UNREAD_MAX_MS + 1_000);
    await vi.waitUntil(() => stage.closed === 1, WAIT_OPTIONS);
  });
});

test("a visitor who sends very many chunks does not keep the request of another one waiting", async () => {
  const sender = await stage.visit();
  sender.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  const origin = await stage.server();
  await origin.waitFor("\r\n\r\n");
  const other = await stage.visit();
  const count = 100_000;
  sender.send(`${"1\r\n~\r\n".repeat(count)}0\r\n\r\n`);
  other.send(GET);
  const countReceived = () => origin.received.split("~").length - 1;
  let before = 0;
  origin.socket.on("data", () => {
    if (stage.arrived.length === 1) before = countReceived();
  });
  await vi.waitUntil(() => countReceived() === count, WAIT_OPTIONS);
  expect(stage.arrived).toHaveLength(2);
  expect(before).toBeLessThan(count);
});
