/** Which routes of the management API accept an agent's token, and what it can't do. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import type { CaptureSummary } from "../../../protocol/schemas/inspector/captures.ts";
import { WATCH_CLOSE, WATCH_PROTOCOL } from "../../../protocol/captures/watch-protocol.ts";
import type { MintedToken, Token } from "../../../protocol/schemas/tokens.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  createCaller,
  mintToken,
  startApi,
  waitUntil,
  type Caller,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { exchange } from "../../harness/tunnel/raw-http.ts";
import { getCapture, waitForCaptures } from "../../harness/tunnel/visited-tunnel.ts";

let api: TestApi;
let owner: Person;
let token: MintedToken;
let agent: Caller;

beforeAll(async () => {
  api = await startApi();
  owner = await api.owner();
  token = await mintToken(owner);
  agent = toCaller(token);
});
afterAll(() => api.stop());

const toCaller = ({ wireBytes }: MintedToken) =>
  createCaller(api.server, { authorization: `Bearer ${wireBytes}` });

async function createTunnel(subdomain: string): Promise<Tunnel> {
  return (await owner.post<Tunnel>("/tunnels", { subdomain, localPort: 3000 })).body;
}

interface OpenWatch {
  received: unknown[];
  /** Resolves with the code of its end. */
  closed: Promise<number>;
}

/** Resolves when the connection is open. */
async function watch(bearer: string): Promise<OpenWatch> {
  const url = `${api.server.url.replace("http", "ws")}/inspector/ws`;
  const socket = new WebSocket(url, WATCH_PROTOCOL, {
    headers: { authorization: `Bearer ${bearer}` },
  });
  const received: unknown[] = [];
  socket.on("message", (data) => received.push(JSON.parse((data as Buffer).toString())));
  const closed = new Promise<number>((resolve) => socket.on("close", resolve));
  await new Promise((resolve, reject) => socket.on("open", resolve).on("error", reject));
  return { received, closed };
}

describe("an agent's token without restrictions", () => {
  test("lists, stops, starts and deletes the tunnels of its organization", async () => {
    const { id } = await createTunnel("agent-managed");
    const listIds = async () => (await agent.get<Tunnel[]>("/tunnels")).body.map((one) => one.id);
    expect(await listIds()).toContain(id);
    expect((await agent.post<Tunnel>(`/tunnels/${id}/stop`)).body.status).toBe("offline");
    expect((await agent.post<Tunnel>(`/tunnels/${id}/start`)).body.status).toBe("active");
    expect((await agent.delete(`/tunnels/${id}`)).status).toBe(200);
    expect(await listIds()).not.toContain(id);
  });

  test("lists tokens and captured requests", async () => {
    const { body: tokens } = await agent.get<Token[]>("/tokens");
    expect(tokens.map(({ nonce }) => nonce)).toContain(token.nonce);
    expect((await agent.get<CaptureSummary[]>("/inspector")).status).toBe(200);
  });

  test("lists and watches requests without their queries, whose beginning a session gets", async () => {
    const secret = `key=${"s".repeat(300)}`;
    const { publicUrl, id: tunnel_id } = await createTunnel("agent-queries");
    const { received } = await watch(token.wireBytes);
    const { host } = new URL(publicUrl);
    const { port } = api.server;
    await exchange(port, `GET /private?${secret} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    const [capture] = await waitForCaptures(owner, { tunnel_id }, 1);
    expect(capture).toMatchObject({ path: "/private", query: secret.slice(0, 256) });
    expect((await getCapture(owner, capture!.id)).query).toBe(secret);
    const { query: _, ...withoutQuery } = capture!;
    const listed = await agent.get<CaptureSummary[]>(`/inspector?tunnel_id=${tunnel_id}`);
    expect(listed.body).toEqual([withoutQuery]);
    expect(await waitUntil(() => Promise.resolve(received.at(-1)))).toEqual(withoutQuery);
  });

  test("can't mint, rotate or revoke tokens, or read what captured requests contain", async () => {
    const statuses = await Promise.all([
      agent.post("/tokens", { name: "more" }),
      agent.post(`/tokens/${token.nonce}/rotate`),
      agent.delete(`/tokens/${token.nonce}`),
      agent.put(`/tokens/${token.nonce}/budget`, { monthlyBudgetUsdCents: null }),
      agent.get(`/inspector/${token.id}`),
      agent.get("/inspector/har"),
    ]);
    expect(statuses.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 401]);
  });

  test("can't manage the tunnels of another organization", async () => {
    const { id } = await createTunnel("agent-stranger");
    const stranger = toCaller(await mintToken(await api.owner()));
    expect((await stranger.post(`/tunnels/${id}/stop`)).status).toBe(404);
    expect((await stranger.delete(`/tunnels/${id}`)).status).toBe(404);
  });

  test("watches requests until it is revoked", async () => {
    const watching = await mintToken(owner);
    const { closed } = await watch(watching.wireBytes);
    await owner.delete(`/tokens/${watching.nonce}`);
    expect(await closed).toBe(WATCH_CLOSE.session_ended);
  });
});

test("an access token in Authorization watches too, as programs send it", async () => {
  const person = await api.owner();
  const { closed } = await watch(person.accessToken);
  await person.post("/auth/logout");
  expect(await closed).toBe(WATCH_CLOSE.session_ended);
});

test("a token that is restricted to names manages nothing", async () => {
  const restricted = toCaller(await mintToken(owner, { allowedSubdomains: ["shop"] }));
  const { id } = await createTunnel("agent-restricted");
  const statuses = await Promise.all([
    restricted.get("/tunnels"),
    restricted.get("/tokens"),
    restricted.get("/inspector"),
    restricted.delete(`/tunnels/${id}`),
  ]);
  expect(statuses.map(({ status }) => status)).toEqual([403, 403, 403, 403]);
});
