/** A local server that speaks https. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { RequestReport } from "../../../../agent/expose.ts";
import { createCertificate } from "../../../harness/fakes/certificate.ts";
import { startStack, type Stack } from "../../../harness/server/stack.ts";

let stack: Stack;
let server: Server;
let origin: string;
beforeAll(async () => {
  server = createServer(createCertificate(), (_, response) => response.end("secure"));
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket: WebSocket, { url }: IncomingMessage) => socket.send(url!));
  server.listen(0, "127.0.0.1");
  [stack] = await Promise.all([startStack(), once(server, "listening")]);
  origin = `https://localhost:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await stack.stop();
  server.closeAllConnections();
  server.close();
});

function openSocket(subdomain: string): WebSocket {
  return new WebSocket(`ws://127.0.0.1:${stack.server.port}/room`, {
    headers: { host: `${subdomain}.localhost:${stack.server.port}` },
  });
}

test("gets requests and WebSockets when its certificate is accepted", async () => {
  await stack.expose({ origin, subdomain: "local-https", insecureUpstream: true });
  expect((await stack.visit("local-https")).body.toString()).toBe("secure");
  const socket = openSocket("local-https");
  expect(String((await once(socket, "message"))[0])).toBe("/room");
  socket.terminate();
});

test("gets neither when its certificate is not trusted", async () => {
  const tunnel = await stack.expose({ origin, subdomain: "local-https-untrusted" });
  for (const visit of [
    () => stack.visit("local-https-untrusted"),
    () => once(openSocket("local-https-untrusted"), "open"),
  ]) {
    const reported = once(tunnel.events, "request");
    await visit().catch(() => undefined);
    const [report] = (await reported) as [RequestReport];
    expect(report).toMatchObject({ status: 502, problem: expect.stringContaining("not trusted") });
  }
});
