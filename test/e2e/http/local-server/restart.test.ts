/** A restart of the local server, as its visitors see it. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { RequestReport } from "../../../../agent/expose.ts";
import { STREAM_WINDOW_BYTES } from "../../../../protocol/limits.ts";
import { exchange } from "../../../harness/tunnel/raw-http.ts";
import { startStack, type Stack } from "../../../harness/server/stack.ts";

let stack: Stack;
beforeAll(async () => void (stack = await startStack()));
afterAll(() => stack.stop());

let server: Server;
let port = 0;
let served: string[];

async function startServer(): Promise<void> {
  server = createServer((request, response) => {
    served.push(`${request.method} ${request.url}`);
    void text(request).then((body) => response.end(`${body.length} bytes`));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket: WebSocket, { url }: IncomingMessage) => socket.send(url!));
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  ({ port } = server.address() as AddressInfo);
}

async function stopServer(): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
}

beforeEach(async () => {
  served = [];
  await startServer();
});
afterEach(async () => {
  if (server.listening) await stopServer();
  port = 0;
});

/** A tunnel whose local server has served a visitor. @returns also whether the server listened, at each change. */
async function exposeServed(subdomain: string, options: { pool?: boolean } = {}) {
  const tunnel = await stack.expose({ port, subdomain, ...options });
  const changes: boolean[] = [];
  tunnel.events.on("localServer", (isListening) => changes.push(isListening));
  expect((await stack.visit(subdomain)).status).toBe(200);
  return { tunnel, changes };
}

function openSocket(subdomain: string): WebSocket {
  const socket = new WebSocket(`ws://127.0.0.1:${stack.server.port}/socket`, {
    headers: { host: `${subdomain}.localhost:${stack.server.port}` },
  });
  return socket.on("error", () => undefined);
}

test("visitors wait for it, and each is served once", async () => {
  const { tunnel, changes } = await exposeServed("restart-waits");
  await stopServer();
  const isRefused = once(tunnel.events, "localServer");
  const body = "x".repeat(2 * STREAM_WINDOW_BYTES);
  const length = `Content-Length: ${body.length}\r\n`;
  const post = exchange(
    stack.server.port,
    `POST /post HTTP/1.1\r\n${length}Host: restart-waits.localhost:${stack.server.port}\r\n\r\n${body}`,
  );
  await isRefused;
  const visits = [post, stack.visit("restart-waits", "/get")];
  const socket = openSocket("restart-waits");
  const message = once(socket, "message");
  await startServer();
  const bodies = (await Promise.all(visits)).map((answer) => answer.body.toString());
  expect(bodies).toEqual([`${body.length} bytes`, "0 bytes"]);
  expect(String((await message)[0])).toBe("/socket");
  expect(served.toSorted()).toEqual(["GET /", "GET /get", "POST /post"]);
  expect(changes).toEqual([false, true]);
  socket.terminate();
});

test("after three seconds they get 502, and the next ones at once, until it is back", async () => {
  const { changes } = await exposeServed("restart-stopped");
  await stopServer();
  expect((await stack.visit("restart-stopped")).status).toBe(502);
  expect((await stack.visit("restart-stopped")).status).toBe(502);
  expect(changes).toEqual([false]);
  await startServer();
  expect((await stack.visit("restart-stopped")).status).toBe(200);
  expect(changes).toEqual([false, true]);
});

test("a visitor who leaves waits no longer", async () => {
  const { tunnel } = await exposeServed("restart-left");
  await stopServer();
  const isRefused = once(tunnel.events, "localServer");
  const reported = once(tunnel.events, "request");
  const socket = openSocket("restart-left");
  await isRefused;
  socket.terminate();
  const [report] = (await reported) as [RequestReport];
  expect(report).toMatchObject({ path: "/socket", status: 0, abortReason: expect.any(String) });
});

test("the end of the tunnel does not wait for it", async () => {
  const { tunnel, changes } = await exposeServed("restart-ended");
  await stopServer();
  const isRefused = once(tunnel.events, "localServer");
  const reported = once(tunnel.events, "request");
  const visit = stack.visit("restart-ended");
  await isRefused;
  const closed = tunnel.close();
  // Only the end of the wait can have failed the request, because the server is back.
  await startServer();
  const [report] = (await reported) as [RequestReport];
  expect(report.problem).toContain("nothing listens at");
  expect((await visit).status).toBe(502);
  await closed;
  expect(changes).toEqual([false]);
});

test("an agent of a pool does not wait, because another one may serve the visitor", async () => {
  const { changes } = await exposeServed("restart-shared", { pool: true });
  await stopServer();
  expect((await stack.visit("restart-shared")).status).toBe(502);
  expect(changes).toEqual([]);
});
