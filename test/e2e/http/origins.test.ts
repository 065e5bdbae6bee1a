import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { OK } from "../../harness/tunnel/origin.ts";
import { findHeader } from "../../harness/tunnel/raw-http.ts";
import { reservePort } from "../../harness/ports.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";

let stack: Stack;
beforeAll(async () => void (stack = await startStack()));
afterAll(() => stack.stop());

/** Listens on one address of this machine only. */
async function listening(address: string, port = 0) {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.on("data", () => socket.write(OK));
  });
  server.listen(port, address);
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, stop: () => server.close() };
}

describe("a local server given by its port", () => {
  test.each(["127.0.0.1", "::1"])("is found when it listens on %s only", async (address) => {
    // Free on all addresses: another server on 127.0.0.1 would be found first.
    const server = await listening(address, await reservePort());
    const subdomain = address === "::1" ? "six" : "four";
    const tunnel = await stack.expose({ port: server.port, subdomain });
    expect((await stack.visit(subdomain)).body.toString()).toBe("ok");
    await tunnel.close();
    server.stop();
  });
});

describe("while the local server is down", () => {
  let port: number;
  beforeAll(async () => {
    const server = await listening("127.0.0.1");
    ({ port } = server);
    server.stop();
    await stack.expose({ port, subdomain: "down" });
  });

  test("a browser gets a page that says what to do", async () => {
    const { status, headers, body } = await stack.visit("down", "/", "Accept: text/html\r\n");
    const named = Object.fromEntries(headers.map(([name, value]) => [name.toLowerCase(), value]));
    expect(status).toBe(502);
    expect(named).toMatchObject({
      "underpass-error": "origin_unreachable",
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-store",
    });
    expect(body.toString()).toContain("Start the local server");
  });

  test.each([
    ["text/html", "TEXT/HTML"],
    ["text/html", "application/json;q=0.9, text/html;charset=utf-8"],
    ["application/json", "application/json, text/html;q=0.9"],
    ["application/json", "text/html;q=0.5, application/json"],
    ["application/json", "text/html;q=0"],
    ["application/json", "*/*"],
  ])("a client gets %s for `Accept: %s`", async (type, accept) => {
    const { headers } = await stack.visit("down", "/", `Accept: ${accept}\r\n`);
    expect(findHeader(headers, "content-type")?.split(";")[0]).toBe(type);
  });

  test("a program gets the same error as JSON", async () => {
    const { status, body } = await stack.visit("down");
    expect(status).toBe(502);
    expect(JSON.parse(body.toString())).toMatchObject({ error: "origin_unreachable" });
  });

  test("the tunnel works again when the local server is back", async () => {
    const server = await listening("127.0.0.1", port);
    expect((await stack.visit("down")).status).toBe(200);
    server.stop();
  });
});

test("an unknown name is reported to browsers and programs", async () => {
  const page = await stack.visit("nobody", "/<script>", "Accept: text/html\r\n");
  expect(page.status).toBe(404);
  expect(page.body.toString()).toContain("No tunnel uses this address");
  expect(page.body.toString()).not.toContain("<script");
  expect(JSON.parse((await stack.visit("nobody")).body.toString())).toMatchObject({
    error: "tunnel_not_found",
  });
});
