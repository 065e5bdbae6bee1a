/** A local server that listens on a Unix socket. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { RequestReport } from "../../../../agent/expose.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { startStack, type Stack } from "../../../harness/server/stack.ts";
import { findHeader } from "../../../harness/tunnel/raw-http.ts";

let stack: Stack;
let directory: string;
beforeAll(async () => {
  [stack, directory] = await Promise.all([startStack(), createTemporaryDir()]);
});
afterAll(async () => {
  await stack.stop();
  await rm(directory, { recursive: true });
});

/** Answers with the `Host` that it got, redirects to itself, and greets WebSockets with their path. */
async function listen(path: string): Promise<Server> {
  const server = createServer(({ headers }, response) => {
    response.setHeader("location", "http://localhost/elsewhere");
    response.end(headers.host);
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket: WebSocket, { url }: IncomingMessage) => socket.send(url!));
  server.listen(path);
  await once(server, "listening");
  return server;
}

async function close(server: Server): Promise<void> {
  server.close();
  server.closeAllConnections();
  await once(server, "close");
}

test("gets requests and WebSockets with the public host name", async () => {
  const path = join(directory, "site.sock");
  const server = await listen(path);
  await stack.expose({ origin: `unix:${path}`, subdomain: "socket-site" });
  const host = `socket-site.localhost:${stack.server.port}`;
  const { body } = await stack.visit("socket-site");
  expect(body.toString()).toBe(host);
  const socket = new WebSocket(`ws://127.0.0.1:${stack.server.port}/room`, { headers: { host } });
  expect(String((await once(socket, "message"))[0])).toBe("/room");
  socket.terminate();
  await close(server);
});

test("is called localhost with hostHeader rewrite, and its redirects lead to the public URL", async () => {
  const path = join(directory, "rewritten.sock");
  const server = await listen(path);
  await stack.expose({
    origin: `unix:${path}`,
    subdomain: "socket-rewritten",
    hostHeader: "rewrite",
  });
  const { body, headers } = await stack.visit("socket-rewritten");
  expect(body.toString()).toBe("localhost");
  expect(findHeader(headers, "location")).toBe(
    `http://socket-rewritten.localhost:${stack.server.port}/elsewhere`,
  );
  await close(server);
});

test("may start later, and is waited for when it restarts", async () => {
  const path = join(directory, "late.sock");
  const tunnel = await stack.expose({ origin: `unix:${path}`, subdomain: "socket-late" });
  const reported = once(tunnel.events, "request");
  expect((await stack.visit("socket-late")).status).toBe(502);
  const [{ problem }] = (await reported) as [RequestReport];
  expect(problem).toBe(
    `there is no socket ${path}; start the local server, or name another socket`,
  );
  const before = await listen(path);
  expect((await stack.visit("socket-late")).status).toBe(200);
  await close(before);
  const isRefused = once(tunnel.events, "localServer");
  const visit = stack.visit("socket-late");
  await isRefused;
  const after = await listen(path);
  expect((await visit).status).toBe(200);
  await close(after);
});

test("serves more visitors at once than its queue holds", async () => {
  const path = join(directory, "busy.sock");
  const server = createServer((_, response) => response.end("served"));
  server.listen({ path, backlog: 1 });
  await once(server, "listening");
  const tunnel = await stack.expose({ origin: `unix:${path}`, subdomain: "socket-busy" });
  const changes: boolean[] = [];
  tunnel.events.on("localServer", (isListening) => changes.push(isListening));
  expect((await stack.visit("socket-busy")).status).toBe(200);
  const answers = await Promise.all(Array.from({ length: 50 }, () => stack.visit("socket-busy")));
  expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200));
  expect(changes).toEqual([]);
  await close(server);
});
