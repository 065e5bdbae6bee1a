/** What the events of a tunnel say about requests, WebSockets and event streams. */
import { once } from "node:events";
import {
  createServer,
  get,
  request as sendRequest,
  type IncomingMessage,
  type Server,
} from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import { expose, type ExposedTunnel } from "../../../../agent/expose.ts";
import { mintToken, startApi, type TestApi } from "../../../harness/server/api.ts";

let api: TestApi;
let local: Server;
let tunnel: ExposedTunnel;
let latency: Promise<unknown[]>;

beforeAll(async () => {
  api = await startApi();
  local = createServer((request, response) => {
    if (request.url === "/events") {
      response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
      return void response.write("data: 1\n\n");
    }
    request.resume().on("end", () => response.end("answer"));
  });
  new WebSocketServer({ server: local }).on("connection", (socket) =>
    socket.on("message", (message: Buffer) => socket.send(`echo ${message.toString()}`)),
  );
  local.listen(0, "127.0.0.1");
  await once(local, "listening");
  const { port } = local.address() as AddressInfo;
  const token = Buffer.from((await mintToken(await api.owner())).wireBytes, "base64");
  tunnel = await expose({ port, server: api.server.url, token, subdomain: "stream-events" });
  latency = once(tunnel.events, "latency");
});
afterAll(async () => {
  await tunnel?.close();
  local?.closeAllConnections();
  local?.close();
  await api?.stop();
});

/** Resolves with the values of the event's arguments at the time of the event. */
async function next(name: "request" | "streamOpened" | "streamClosed"): Promise<object> {
  const [report] = (await once(tunnel.events, name)) as [object];
  return { ...report };
}

const visit = (path: string, method = "GET") => ({
  host: "127.0.0.1",
  port: api.server.port,
  path,
  method,
  headers: { host: "stream-events.localhost" },
});

test("a request is reported with the sizes of both bodies", async () => {
  const reported = next("request");
  sendRequest({ ...visit("/upload", "POST"), agent: false }, (response) => response.resume()).end(
    "12345",
  );
  expect(await reported).toMatchObject({ kind: "request", bytesIn: 5, bytesOut: 6, status: 200 });
});

test("a WebSocket is reported when it opens and when it closes, with its messages and bytes", async () => {
  const opened = next("streamOpened");
  const url = `ws://127.0.0.1:${api.server.port}/chat`;
  const socket = new WebSocket(url, { headers: { host: "stream-events.localhost" } });
  const [report] = await Promise.all([opened, once(socket, "open")]);
  const { id, ...first } = report as { id: number };
  expect(first).toMatchObject({ kind: "websocket", path: "/chat", status: 101, messages: 0 });
  socket.send("hello");
  await once(socket, "message");
  const closed = next("streamClosed");
  socket.close();
  expect(await closed).toMatchObject({ id, messages: 2, bytesIn: 5, bytesOut: 10 });
});

test("an event stream is reported when it begins, and when its visitor has left", async () => {
  const opened = next("streamOpened");
  const request = get({ ...visit("/events"), agent: false });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  const { id, ...first } = (await opened) as { id: number };
  expect(first).toMatchObject({ kind: "events", path: "/events", status: 200 });
  await once(response, "data");
  const closed = next("streamClosed");
  response.destroy();
  expect(await closed).toMatchObject({ id, bytesOut: 9 });
});

test("the latency to the server is measured as soon as the tunnel is ready", async () => {
  const [ms] = (await latency) as [number];
  expect(ms).toBeGreaterThan(0);
  expect(ms).toBeLessThan(10_000);
});
