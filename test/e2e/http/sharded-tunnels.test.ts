/** A tunnel whose visitors are spread over several objects, with a real agent and visitors from many addresses. */
import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { waitUntil } from "../../harness/server/api.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";

const VISITORS = 24;

let stack: Stack;
beforeAll(async () => {
  stack = await startStack();
});
afterAll(() => stack.stop());

/** A tunnel with four objects, whose agent connected before their number was set. */
async function openTunnel(subdomain: string): Promise<string> {
  const tunnel = await stack.expose({
    subdomain,
    fetch: async (visit) => new Response(`received ${await visit.text()}`),
  });
  await set(tunnel.tunnelId, "shards", { shards: 4 });
  return tunnel.tunnelId;
}

async function set(id: string, setting: string, value: object): Promise<void> {
  const { status } = await stack.owner.put(`/tunnels/${id}/${setting}`, value);
  expect(status).toBe(200);
}

interface Visit {
  status: number;
  body: string;
}

/** A visitor with an address of its own: all of 127.0.0.0/8 is this machine. */
async function visit(
  subdomain: string,
  visitor: number,
  { path = "/", body = "", headers = {} } = {},
): Promise<Visit> {
  const { port } = stack.server;
  const visiting = request({
    host: "127.0.0.1",
    localAddress: `127.0.0.${10 + visitor}`,
    port,
    path,
    method: body === "" ? "GET" : "POST",
    headers: { host: `${subdomain}.localhost:${port}`, ...headers },
    agent: false,
  });
  visiting.end(body);
  const [answer] = (await once(visiting, "response")) as [IncomingMessage];
  return { status: answer.statusCode!, body: await text(answer) };
}

function visitEach(subdomain: string, options?: Parameters<typeof visit>[2]): Promise<Visit[]> {
  const visitors = Array.from({ length: VISITORS }, (_, visitor) => visitor);
  return Promise.all(visitors.map((visitor) => visit(subdomain, visitor, options)));
}

test("visitors are served by all objects, and every request is captured and counted once", async () => {
  const id = await openTunnel("sharded-visits");
  for (const { status, body } of await visitEach("sharded-visits", { body: "hello" })) {
    expect([status, body]).toEqual([200, "received hello"]);
  }
  const { body: captures } = await stack.owner.get<CaptureSummary[]>(
    `/inspector?tunnel_id=${id}&limit=100`,
  );
  expect(captures).toHaveLength(VISITORS);
  const addresses = captures.map(({ client_ip }) => client_ip);
  expect(new Set(addresses).size).toBe(VISITORS);
  await waitUntil(async () => {
    const { body } = await stack.owner.get<Tunnel[]>("/tunnels");
    const tunnel = body.find((it) => it.id === id);
    return tunnel?.totalRequests === VISITORS && tunnel.bytesIn === VISITORS * "hello".length;
  });
});

test("each object has its share of a limit for all visitors", async () => {
  const id = await openTunnel("sharded-limit");
  await set(id, "policy", {
    actions: [{ kind: "rate_limit", requests_per_minute: 1, per_client_ip: false }],
  });
  const visits = await visitEach("sharded-limit");
  const passed = visits.filter(({ status }) => status === 200).length;
  // One of each object; twice as many when a minute ends meanwhile. A single object would let two pass at most.
  expect(passed).toBeGreaterThan(2);
  expect(passed).toBeLessThanOrEqual(8);
});

test("a limit for each visitor is exact, because a visitor always reaches the same object", async () => {
  const id = await openTunnel("sharded-each");
  await set(id, "policy", {
    actions: [{ kind: "rate_limit", requests_per_minute: 3, per_client_ip: true }],
  });
  for (const visitor of [1, 2]) {
    const visits = await Promise.all(
      Array.from({ length: 12 }, () => visit("sharded-each", visitor)),
    );
    const passed = visits.filter(({ status }) => status === 200).length;
    expect([3, 6]).toContain(passed);
  }
});

test("a password is required at every object from the response of the API on", async () => {
  const id = await openTunnel("sharded-password");
  await set(id, "auth", { username: "ann", password: "open sesame" });
  const refused = await visitEach("sharded-password");
  expect(refused.map(({ status }) => status)).toEqual(Array(VISITORS).fill(401));
  const authorization = `Basic ${btoa("ann:open sesame")}`;
  for (const visitor of [1, 2, 3, 4]) {
    const { status } = await visit("sharded-password", visitor, { headers: { authorization } });
    expect(status).toBe(200);
  }
});

test("a WebSocket of any visitor passes", async () => {
  const site = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  site.on("connection", (socket) => socket.on("message", (data: Buffer) => socket.send(data)));
  await once(site, "listening");
  const { port: localPort } = site.address() as { port: number };
  const tunnel = await stack.expose({ subdomain: "sharded-sockets", port: localPort });
  await set(tunnel.tunnelId, "shards", { shards: 4 });
  const { port } = stack.server;
  const url = `ws://127.0.0.1:${port}/`;
  for (const visitor of [1, 2, 3, 4, 5, 6]) {
    const socket = new WebSocket(url, {
      localAddress: `127.0.0.${10 + visitor}`,
      headers: { host: `sharded-sockets.localhost:${port}` },
    });
    await once(socket, "open");
    socket.send(`from ${visitor}`);
    const [message] = (await once(socket, "message")) as [Buffer];
    expect(message.toString()).toBe(`from ${visitor}`);
    socket.close();
    await once(socket, "close");
  }
  site.close();
});
