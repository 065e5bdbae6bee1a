import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";

let stack: Stack;
let shop: RawOrigin;
let other: RawOrigin;

beforeAll(async () => {
  const answering = (name: string) =>
    startRawOrigin(() => `HTTP/1.1 200 OK\r\ncontent-length: ${name.length}\r\n\r\n${name}`);
  [stack, shop, other] = await Promise.all([startStack(), answering("shop"), answering("other")]);
  await stack.expose({ port: shop.port, subdomain: "shop" });
  await stack.expose({ port: other.port, subdomain: "other" });
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([shop.stop(), other.stop()]);
});
beforeEach(() => {
  shop.requests.length = 0;
  other.requests.length = 0;
});

/** @param hosts the values of the Host headers. */
const request = (...hosts: string[]) => {
  const lines = hosts.map((host) => `Host:${host}\r\n`).join("");
  return exchange(stack.server.port, `GET / HTTP/1.1\r\n${lines}\r\n`);
};

describe("a tunnel is reached by", () => {
  test.each([
    " shop.localhost",
    " SHOP.LocalHost",
    " shop.localhost.",
    " shop.localhost:1",
    " shop.localhost.:65535",
    " shop.localhost:",
    "shop.localhost",
  ])("Host:%s", async (host) => {
    const { status, body } = await request(host);
    expect([status, body.toString()]).toEqual([200, "shop"]);
  });
});

async function expectNoTunnel(host: string, statuses: number[]): Promise<void> {
  const { status } = await request(host);
  expect(statuses).toContain(status);
  expect([...shop.requests, ...other.requests]).toEqual([]);
}

describe("no tunnel is reached by", () => {
  test.each([
    "",
    " ",
    " x.shop.localhost",
    " shop.localhost.evil",
    " shop..localhost",
    ` ${"a".repeat(300)}.localhost`,
    " agent.internal",
    " AGENT.internal.:443",
    " shop",
    " -shop.localhost",
  ])("Host:%s", (host) => expectNoTunnel(host, [400, 404]));

  // These do not reach the Worker: workerd's own listener answers an invalid host name with 500.
  test.each([
    " shop.localhost@evil.test",
    " other@shop.localhost",
    " shop.localhost:80@other.localhost",
    " shop%2elocalhost",
    " shop.localhost/other",
    " shop.localhost\\other",
    " shop.localhost#other",
    " shop.localhost?other",
    " shop.localhost,other.localhost",
    " shop localhost",
    " shop.localhost  ",
    " sh\u00f6p.localhost",
  ])("Host:%s", (host) => expectNoTunnel(host, [400, 404, 500]));

  test("two Host lines", async () => {
    const { status } = await request(" shop.localhost", " other.localhost");
    expect(status).toBeGreaterThanOrEqual(400);
    expect([...shop.requests, ...other.requests]).toEqual([]);
  });

  test("the agents' internal host", async () => {
    for (const host of ["agent.internal", "shop.localhost"]) {
      const answer = await exchange(
        stack.server.port,
        `GET /connect HTTP/1.1\r\nHost: ${host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nunderpass-admission: {}\r\n\r\n`,
      );
      expect(answer.status).not.toBe(101);
    }
  });
});

test("no header of a visitor leads to another tunnel", async () => {
  const lines = ["X-Forwarded-Host", "X-Host", "Forwarded", "X-Original-Host", "X-Original-URL"]
    .map((name) => `${name}: other.localhost\r\n`)
    .join("");
  const { body } = await exchange(
    stack.server.port,
    `GET / HTTP/1.1\r\nHost: shop.localhost\r\n${lines}\r\n`,
  );
  expect(body.toString()).toBe("shop");
  expect(other.requests).toEqual([]);
});
