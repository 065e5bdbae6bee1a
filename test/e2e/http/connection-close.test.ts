/** The end of a visitor's connection that the visitor asked for (RFC 9112 §9.6). */
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { ConnectionEnd } from "../../harness/connection-end.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";

let stack: Stack;
let origin: RawOrigin;
beforeAll(async () => {
  [stack, origin] = await Promise.all([startStack(), startRawOrigin()]);
  await stack.expose({ port: origin.port, subdomain: "connection-close" });
});
afterAll(async () => {
  await stack.stop();
  await origin.stop();
});

test.each([
  ["the option close", "HTTP/1.1", "Connection: close\r\n"],
  ["HTTP/1.0", "HTTP/1.0", ""],
])("with %s, a request is the last: the one behind it is not served", async (_, version, field) => {
  origin.requests.length = 0;
  const visitor = new ConnectionEnd(connect(stack.server.port, "127.0.0.1"));
  const host = "Host: connection-close.localhost\r\n";
  const request = (path: string, rest: string) => `GET ${path} ${version}\r\n${host}${rest}\r\n`;
  visitor.send(request("/last", field) + request("/behind", ""));
  await vi.waitUntil(() => visitor.hasEnded, WAIT_OPTIONS);
  expect(visitor.received.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200"]);
  expect(origin.requests.map(({ target }) => target)).toEqual(["/last"]);
});
