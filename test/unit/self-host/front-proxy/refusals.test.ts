/** The responses that the front proxy itself gives to a visitor. */
import { afterAll, afterEach, beforeAll, expect, test, vi } from "vitest";
import { HEAD_MAX_BYTES } from "../../../../self-host/front-proxy/http1/request-head.ts";
import { FrontProxyStage, GET, UPGRADE } from "../../../harness/front-proxy-stage.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

let stage: FrontProxyStage;

beforeAll(async () => {
  stage = await FrontProxyStage.start();
});
afterAll(() => stage.stop());
afterEach(() => stage.clear());

test.each([
  ["that is no HTTP", "hello\r\n\r\n", 400],
  ["that begins TLS, and waits for the answer,", "\x16\x03\x01", 400],
  [
    "with a length and an encoding",
    `POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
    400,
  ],
  ["without a Host", "GET / HTTP/1.1\r\n\r\n", 400],
  ["of HTTP/1.0 without a Host", "GET / HTTP/1.0\r\n\r\n", 400],
  ["with another encoding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 501],
  ["for another server", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 405],
  ["with a method that workerd does not know", "LINK / HTTP/1.1\r\nHost: a\r\n\r\n", 405],
  ["with a method in lower case", "get / HTTP/1.1\r\nHost: a\r\n\r\n", 405],
  ["that asks for a WebSocket without a key", UPGRADE.replace(/Sec-WebSocket-Key.*\r\n/, ""), 400],
  ["with an old version of WebSocket", UPGRADE.replace("13", "8"), 426],
  ["with a head that does not end", `GET / HTTP/1.1\r\nX: ${"a".repeat(HEAD_MAX_BYTES)}`, 431],
  ["with too many header fields", `GET / HTTP/1.1\r\nHost: a\r\n${"X:\r\n".repeat(256)}\r\n`, 431],
])("after a request %s, the connection ends", async (_, text, status) => {
  const visitor = await stage.visit();
  visitor.send(text);
  await vi.waitUntil(() => visitor.hasEnded, WAIT_OPTIONS);
  expect(visitor.received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(visitor.received).toMatch(/\r\nunderpass-error: [a-z_]+\r\nunderpass-request-id: /);
  expect(visitor.received).toContain("\r\nx-content-type-options: nosniff\r\n");
  expect(visitor.received.includes("\r\nallow: GET, HEAD, ")).toBe(status === 405);
  const upgradeFields =
    "\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n";
  expect(visitor.received.includes(upgradeFields)).toBe(status === 426);
  const isInvalid = visitor.received.includes('"error":"invalid_request"');
  expect(visitor.received.includes('"fields":[]')).toBe(isInvalid);
  expect(stage.arrived).toEqual([]);
});

test.each([
  ["is refused", "HEAD / HTTP/1.1\r\nHost: a b\r\n\r\n", 400],
  ["the server does not answer", GET.replace("GET", "HEAD"), 503],
])("the answer to a HEAD request that %s has no body", async (_, text, status) => {
  const visitor = await stage.visit();
  visitor.send(text);
  if (status === 503) (await stage.server()).socket.destroy();
  await vi.waitUntil(() => visitor.hasEnded, WAIT_OPTIONS);
  expect(visitor.received).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(visitor.received).toMatch(/\r\ncontent-length: \d+\r\n/);
  expect(visitor.received).toMatch(/\r\n\r\n$/);
});
