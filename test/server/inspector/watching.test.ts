/** Requests watched as they happen, on a complete server: by Node.js, by a browser, and by clients that are refused. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocket as AnySocket } from "ws";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import type { ErrorBody } from "../../../protocol/schemas/error-body.ts";
import { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { openBrowser, openPage } from "../../harness/browser/browser.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";
import { readExample, loadExample, NodeWatcher, type Watch } from "../../harness/tunnel/watcher.ts";

let api: TestApi;
let site: Server;
let watchByExample: Watch;
const agents: ExposedTunnel[] = [];
/** Resolves when the site has received the request for /slow, whose response waits for `released`. */
const received = Promise.withResolvers<void>();
const released = Promise.withResolvers<void>();

beforeAll(async () => {
  site = createServer(({ url }, answer) => {
    if (url !== "/slow") return void answer.end("hello");
    received.resolve();
    void released.promise.then(() => answer.end("hello"));
  }).listen(0, "127.0.0.1");
  [api, watchByExample] = await Promise.all([startApi({ shared: false }), loadExample()]);
});
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.close()));
  site.close();
  await api.stop();
});

async function exposeSite(owner: Person): Promise<ExposedTunnel> {
  const { wireBytes } = await mintToken(owner);
  const token = Buffer.from(wireBytes, "base64");
  const { port } = site.address() as AddressInfo;
  const agent = await expose({ server: api.server.url, token, port });
  agents.push(agent);
  return agent;
}

function visit(agent: Pick<ExposedTunnel, "url">, path: string) {
  const { host } = new URL(agent.url);
  return exchange(api.server.port, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
}

async function watch(by: Person): Promise<NodeWatcher> {
  const watcher = new NodeWatcher(watchByExample, api.server.url, by.accessToken);
  await watcher.opened;
  return watcher;
}

/** Requests an upgrade. @returns the outcome, also of a refusal. */
function tryUpgrade(
  protocols: string[],
  query = "",
): Promise<{ status: number; protocol: string; error: string | undefined }> {
  const url = `${api.server.url.replace("http", "ws")}/inspector/ws${query}`;
  const socket = new AnySocket(url, protocols);
  return new Promise((resolve) => {
    socket.on("open", () => {
      resolve({ status: 101, protocol: socket.protocol, error: undefined });
      socket.close();
    });
    socket.on("unexpected-response", (_, answer) => {
      let text = "";
      answer.on("data", (chunk) => (text += String(chunk)));
      answer.on("end", () => {
        const { error } = JSON.parse(text) as ErrorBody;
        resolve({ status: answer.statusCode ?? 0, protocol: "", error });
      });
    });
    socket.on("error", () => undefined);
  });
}

test("the documented example receives a request as the inspector lists it", async () => {
  const owner = await api.owner();
  const agent = await exposeSite(owner);
  using watcher = await watch(owner);
  expect((await visit(agent, "/shown?q=1")).status).toBe(200);
  const received = await watcher.waitForRequest("/shown");
  expect(CaptureSummary.parse(received)).toMatchObject({
    tunnel_id: agent.tunnelId,
    method: "GET",
    status: 200,
    response_size: 5,
    kind: "http",
    state: "complete",
  });
  expect(watcher.missed).toBe(0);
});

test("a tunnel whose agent never connected sends its requests too, also to a watcher who connects after the first ones", async () => {
  const owner = await api.owner();
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  const reserved = { url: tunnel.publicUrl };
  expect((await visit(reserved, "/unwatched")).status).toBe(502);
  for (const path of ["/first", "/second"]) {
    using watcher = await watch(owner);
    expect((await visit(reserved, path)).status).toBe(502);
    const received = await watcher.waitForRequest(path);
    expect(received).toMatchObject({ tunnel_id: tunnel.id, status: 502 });
    watcher.socket.close();
    await watcher.closed;
  }
});

test("the documented example works in a browser", async () => {
  const owner = await api.owner();
  const agent = await exposeSite(owner);
  const browser = await openBrowser();
  try {
    const { page, problems } = await openPage(browser);
    await page.goto(`${api.server.url}/health`);
    const source = (await readExample()).replace("export ", "");
    await page.evaluate(
      `window.received = [];
      ${source}
      const socket = watch(location.origin, ${JSON.stringify(owner.accessToken)}, (request) => {
        if (request.state === "complete") received.push(request.path);
      });
      new Promise((resolve) => socket.addEventListener("open", resolve)).then(() => socket.protocol)`,
    );
    for (const path of ["/one", "/two", "/three"]) await visit(agent, path);
    await page.waitForFunction("received.length === 3");
    expect(await page.evaluate("received")).toEqual(["/one", "/two", "/three"]);
    expect(problems).toEqual([]);
  } finally {
    await browser.close();
  }
});

test("a watcher of one tunnel receives only its requests, and several in one message on request", async () => {
  const owner = await api.owner();
  const [agent, other] = [await exposeSite(owner), await exposeSite(owner)];
  const url = `${api.server.url.replace("http", "ws")}/inspector/ws?batch=1&tunnel_id=${agent.tunnelId}`;
  const socket = new AnySocket(url, [`bearer.${owner.accessToken}`]);
  const received: CaptureSummary[] = [];
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString()) as { type: string; requests: CaptureSummary[] };
    expect(message.type).toBe("requests");
    received.push(...message.requests);
  });
  await new Promise((resolve) => socket.on("open", resolve));
  await visit(other, "/elsewhere");
  await Promise.all(Array.from({ length: 20 }, (_, i) => visit(agent, `/${i}`)));
  const paths = () => received.filter(({ state }) => state === "complete").map(({ path }) => path);
  await waitUntil(() => Promise.resolve(paths().length === 20), 30_000);
  expect(paths().sort()).toEqual(Array.from({ length: 20 }, (_, i) => `/${i}`).sort());
  socket.close();
});

test("the selected protocol was offered, and is the token only if there is no other", async () => {
  const { accessToken } = await api.owner();
  const bearer = `bearer.${accessToken}`;
  expect(await tryUpgrade([bearer])).toMatchObject({ status: 101, protocol: bearer });
  expect(await tryUpgrade([bearer, "underpass.inspector"])).toMatchObject({
    status: 101,
    protocol: "underpass.inspector",
  });
});

test("a watch needs a valid token, a tunnel of the organization and a valid query", async () => {
  const owner = await api.owner();
  const otherOwner = await api.owner();
  const { body: tunnel } = await owner.post<Tunnel>("/tunnels", { localPort: 1 });
  const ownBearer = `bearer.${owner.accessToken}`;
  const otherBearer = `bearer.${otherOwner.accessToken}`;
  const unauthorized = { status: 401, error: "unauthorized" };
  expect(await tryUpgrade([])).toMatchObject(unauthorized);
  expect(await tryUpgrade(["underpass.inspector"])).toMatchObject(unauthorized);
  expect(await tryUpgrade(["bearer.x"])).toMatchObject(unauthorized);
  expect(await tryUpgrade([`${ownBearer.slice(0, -4)}AAAA`])).toMatchObject(unauthorized);
  expect(await tryUpgrade([ownBearer], "?tunnel_id=x")).toMatchObject({ status: 400 });
  expect(await tryUpgrade([ownBearer], `?tunnel_id=${tunnel.id}`)).toMatchObject({ status: 101 });
  expect(await tryUpgrade([otherBearer], `?tunnel_id=${tunnel.id}`)).toMatchObject({
    status: 404,
    error: "not_found",
  });
  expect((await api.anonymous.get("/inspector/ws")).status).toBe(401);
  expect((await owner.get("/inspector/ws")).status).toBe(426);
  const headers = { "sec-websocket-protocol": ownBearer };
  expect((await api.anonymous.send("GET", "/inspector/ws", { headers })).status).toBe(426);
  await owner.post("/auth/logout");
  expect(await tryUpgrade([ownBearer])).toMatchObject(unauthorized);
});

test("a watch ends with the session and with the membership", async () => {
  const owner = await api.owner();
  const viewer = await api.colleague(owner, "viewer");
  const agent = await exposeSite(owner);
  const [first, second, viewerWatcher] = [
    await watch(owner),
    await watch(owner),
    await watch(viewer),
  ];
  await owner.delete(`/orgs/${owner.orgId}/members/${viewer.userId}`);
  expect(await viewerWatcher.closed).toEqual({ code: 4401, reason: "session_ended" });
  const again = await api.logIn(owner.email, owner.password);
  using other = await watch(again);
  await owner.post("/auth/logout");
  for (const watcher of [first, second]) expect((await watcher.closed).code).toBe(4401);
  await visit(agent, "/after");
  await other.waitForRequest("/after");
  for (const watcher of [first, second, viewerWatcher]) expect(watcher.requests).toEqual([]);
});

test("a watcher that reconnects after a kill -9 of workerd receives requests again", async () => {
  const owner = await api.owner();
  const agent = await exposeSite(owner);
  const watcher = await watch(owner);
  await visit(agent, "/before");
  await watcher.waitForRequest("/before");
  process.kill(await api.server.getPid("workerd"), "SIGKILL");
  await watcher.closed;
  using reconnected = await waitUntil(() => watch(owner).catch(() => undefined), 60_000);
  await waitUntil(async () => (await visit(agent, "/back")).status === 200, 60_000);
  await reconnected.waitForRequest("/back");
});

test("a stopping server asks its watchers to reconnect, and does not wait for them", async () => {
  const [owner, other] = [await api.owner(), await api.owner()];
  const agent = await exposeSite(owner);
  const watcher = await watch(owner);
  const slow = visit(agent, "/slow");
  await received.promise;
  const stopped = api.server.stop();
  expect(await watcher.closed).toEqual({ code: 4503, reason: "going_away" });
  expect(await tryUpgrade([`bearer.${other.accessToken}`])).toMatchObject({
    status: 503,
    error: "unavailable",
  });
  released.resolve();
  expect((await slow).status).toBe(200);
  expect(await stopped).toBe(0);
});
