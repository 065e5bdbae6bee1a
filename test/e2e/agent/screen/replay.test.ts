/** The key `r` of the screen: a visitor's request again, from the agent to the local server. */
import { get, type IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import WebSocket, { WebSocketServer } from "ws";
import { startSharedServer, type SharedServer } from "../../../harness/agent/shared-server.ts";
import { listCaptures } from "../../../harness/tunnel/visited-tunnel.ts";

interface Seen {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

let shared: SharedServer;
let seen: Seen[] = [];
/** The status of the next responses. */
let status = 200;
beforeAll(async () => {
  shared = await startSharedServer(async (request, response) => {
    const { method = "", url = "", headers } = request;
    seen.push({ method, url, headers, body: await text(request) });
    const isStream = url === "/events";
    response.writeHead(status, { "content-type": isStream ? "text/event-stream" : "text/plain" });
    if (isStream) response.write("data: 1\n\n");
    else response.end("x".repeat(status));
  });
  const sockets = new WebSocketServer({ server: shared.local });
  sockets.on("connection", (socket) => socket.close());
});
afterAll(() => shared?.[Symbol.asyncDispose]());

test("sends the request as the visitor sent it, with what the service redacts, and adds a row", async () => {
  await using screen = await shared.share("replay-same");
  screen.press("r");
  await screen.waitFor(/Select a request first/);
  const lines = "authorization: Bearer secret\r\ncookie: a=b\r\nx-name: žluť\r\n";
  const body = "amount=12";
  await shared.visit(
    "replay-same",
    "/orders?of=today",
    "POST",
    `${lines}content-length: ${body.length}\r\n\r\n${body}`,
  );
  await screen.waitFor(/\/orders/);
  screen.press("jr");
  await screen.waitFor(/^200 as before, [\d.]+ ms$/m);
  await screen.waitFor(
    /Requests {4}2\n\n.*POST.*\/orders\?of=today {2}replay\n> .*\/orders\?of=today\n/,
  );
  const [first, again, ...others] = seen;
  expect(others).toEqual([]);
  expect(first).toMatchObject({ body, headers: { authorization: "Bearer secret", cookie: "a=b" } });
  const { "underpass-replay": mark, ...headers } = again!.headers;
  expect(mark).toBe("agent");
  expect({ ...again, headers }).toEqual(first);
});

test("says how the response differs, also while the local server is stopped and for a replay of a replay", async () => {
  await using screen = await shared.share("replay-differs");
  await shared.visit("replay-differs", "/page");
  await screen.waitFor(/\/page/);
  status = 500;
  screen.press("jr");
  await screen.waitFor(/^500 instead of 200, [\d.]+ ms, 500 B instead of 200 B$/m);
  screen.press("kr");
  await screen.waitFor(/^500 as before, [\d.]+ ms$/m);
  status = 200;
  await screen.waitFor(/Requests {4}3\n/);
});

test("shows the stream that the replay of an event stream opens, until the next replay", async () => {
  await using screen = await shared.share("replay-events");
  const { port } = shared.api.server;
  const headers = { host: "replay-events.localhost" };
  const visitor = get({ host: "127.0.0.1", port, path: "/events", headers });
  visitor.on("error", () => undefined);
  await screen.waitFor(/1, 1 open/);
  screen.press("jr");
  await screen.waitFor(/^200 as before, the event stream is open$/m);
  await screen.waitFor(/2, 2 open\n\n.*\/events {2}event stream open, replay\n/);
  screen.press("r");
  await screen.waitFor(/Requests {4}3, 2 open\n/);
  visitor.destroy();
  await screen.waitFor(/Requests {4}3, 1 open\n/);
});

test("is refused for a WebSocket and for a body that is too large to keep", async () => {
  await using screen = await shared.share("replay-refused");
  const headers = { host: "replay-refused.localhost" };
  const socket = new WebSocket(`ws://127.0.0.1:${shared.api.server.port}/socket`, { headers });
  await once(socket, "close");
  await screen.waitFor(/\/socket {2}.*closed/);
  screen.press("jr");
  await screen.waitFor(/A WebSocket can't be replayed/);
  const body = "x".repeat(512 * 1024 + 1);
  await shared.visit(
    "replay-refused",
    "/upload",
    "PUT",
    `content-length: ${body.length}\r\n\r\n${body}`,
  );
  await screen.waitFor(/\/upload/);
  screen.press("kr");
  await screen.waitFor(/Not replayed: its body is larger than 512 KiB/);
  await screen.waitFor(/Requests {4}2\n/);
});

test("stays on this machine: the service captures no replay", async () => {
  seen = [];
  await using screen = await shared.share("replay-local");
  await shared.visit("replay-local", "/once");
  await screen.waitFor(/\/once/);
  screen.press("jr");
  await screen.waitFor(/200 as before/);
  await shared.visit("replay-local", "/last");
  await screen.waitFor(/\/last/);
  const listed = await listCaptures(shared.owner, {});
  const paths = listed.body.map(({ path }) => path);
  expect(paths.filter((path) => path === "/once" || path === "/last")).toEqual(["/last", "/once"]);
  expect(seen.map(({ url }) => url)).toEqual(["/once", "/once", "/last"]);
});
