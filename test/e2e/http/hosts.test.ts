import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import { exchange, findHeader } from "../../harness/tunnel/raw-http.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";

let stack: Stack;
let shop: RawOrigin;
let other: RawOrigin;

beforeAll(async () => {
  const answering = (name: string) =>
    startRawOrigin(() => `HTTP/1.1 200 OK\r\ncontent-length: ${name.length}\r\n\r\n${name}`);
  [stack, shop, other] = await Promise.all([
    startStack(),
    answering("shop-host"),
    answering("other-host"),
  ]);
  await stack.expose({ port: shop.port, subdomain: "shop-host" });
  await stack.expose({ port: other.port, subdomain: "other-host" });
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
    " shop-host.localhost",
    " SHOP-HOST.LocalHost",
    " shop-host.localhost.",
    " shop-host.localhost:1",
    " shop-host.localhost.:65535",
    " shop-host.localhost:",
    "shop-host.localhost",
  ])("Host:%s", async (host) => {
    const { status, body } = await request(host);
    expect([status, body.toString()]).toEqual([200, "shop-host"]);
  });
});

test("the host of a target for proxies counts, and not the Host header (RFC 9112 §3.2.2)", async () => {
  const head = `GET http://shop-host.localhost/a?b HTTP/1.1\r\nHost: other-host.localhost\r\n\r\n`;
  const { status, body } = await exchange(stack.server.port, head);
  expect([status, body.toString()]).toEqual([200, "shop-host"]);
  expect(shop.requests[0]?.target).toBe("/a?b");
  expect(findHeader(shop.requests[0]?.headers ?? [], "x-forwarded-host")).toMatch(/^shop-host\./);
  expect(other.requests).toEqual([]);
});

test("a tunnel that has just been opened is reached at once, also under a name that was requested before", async () => {
  for (const subdomain of ["soon-1", "soon-2"]) {
    expect((await request(` ${subdomain}.localhost`)).status).toBe(404);
    await stack.expose({ port: shop.port, subdomain });
    expect((await request(` ${subdomain}.localhost`)).status).toBe(200);
  }
});

async function expectRefused(status: number, code: string, ...hosts: string[]): Promise<void> {
  const answer = await request(...hosts);
  expect([answer.status, findHeader(answer.headers, "underpass-error")]).toEqual([status, code]);
  expect([...shop.requests, ...other.requests]).toEqual([]);
}

describe("no tunnel is reached by", () => {
  test.each([
    " x.shop-host.localhost",
    " shop-host.localhost.evil",
    " shop-host",
    " -shop-host.localhost",
  ])("Host:%s", (host) => expectRefused(404, "tunnel_not_found", host));

  test.each([
    "",
    " ",
    " /",
    " a@b",
    " shop-host..localhost",
    ` ${"a".repeat(300)}.localhost`,
    " agent.internal",
    " AGENT.internal.:443",
    " shop-host.localhost@evil.test",
    " other-host@shop-host.localhost",
    " shop-host.localhost:80@other-host.localhost",
    " shop-host.localhost:99999999",
    " shop-host.localhost:x",
    " shop-host%2elocalhost",
    " shop-host.localhost/other",
    " shop-host.localhost\\other",
    " shop-host.localhost#other",
    " shop-host.localhost?other",
    " shop-host.localhost,other-host.localhost",
    " shop-host localhost",
    " shop-host.localhost  ",
    " sh\u00f6p.localhost",
  ])("Host:%s, which is invalid", (host) => expectRefused(400, "invalid_host", host));

  test("two Host lines, or none", async () => {
    const twice = [" shop-host.localhost", " other-host.localhost"];
    await expectRefused(400, "invalid_host", ...twice);
    await expectRefused(400, "invalid_host", twice[0]!, twice[0]!);
    await expectRefused(400, "invalid_host");
  });

  test("the agents' internal host", async () => {
    for (const host of ["agent.internal", "shop-host.localhost"]) {
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
    .map((name) => `${name}: other-host.localhost\r\n`)
    .join("");
  const { body } = await exchange(
    stack.server.port,
    `GET / HTTP/1.1\r\nHost: shop-host.localhost\r\n${lines}\r\n`,
  );
  expect(body.toString()).toBe("shop-host");
  expect(other.requests).toEqual([]);
});
