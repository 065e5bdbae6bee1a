/** The connected agents, as the API lists them, on a complete server. */
import { once } from "node:events";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import type { HttpTunnel } from "../../../agent/tunnel/http-tunnel.ts";
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { ENDED_RETRY_MAX_MS, ENDED_RETRY_MIN_MS } from "../../../agent/back-off.ts";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import type { Connection } from "../../../protocol/schemas/tunnels/connections.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  getSocket,
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { damageObject } from "../../harness/unreadable-objects.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
const agents: ExposedTunnel[] = [];
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.close()));
  await api.stop();
});

/** Starts an agent that reconnects by itself. */
async function startAgent(wireBytes: string): Promise<ExposedTunnel> {
  const token = Buffer.from(wireBytes, "base64");
  const agent = await expose({ server: api.server.url, token, port: 1 });
  agents.push(agent);
  return agent;
}

async function listConnections(by: Person): Promise<Connection[]> {
  return (await by.get<Connection[]>("/connections")).body;
}

/** Waits until the list has `count` connections. */
function waitForConnections(by: Person, count: number): Promise<Connection[]> {
  return waitUntil(async () => {
    const connections = await listConnections(by);
    return connections.length === count && connections;
  });
}

test("a connection is listed with its agent, its tunnel and its address, newest first", async () => {
  const owner = await api.owner();
  expect(await listConnections(owner)).toEqual([]);
  const { wireBytes } = await mintToken(owner);
  const before = Date.now();
  const first = await api.connectAgent(wireBytes, { port: 1 });
  await waitForConnections(owner, 1);
  await api.connectAgent(wireBytes, { port: 2 });
  const connections = await waitForConnections(owner, 2);
  const { body: tunnels } = await owner.get<Tunnel[]>("/tunnels");
  expect(connections.map(({ tunnels }) => tunnels)).toEqual(tunnels.map(({ id }) => [id]));
  for (const { remote_ip: address, connected_at: since } of connections) {
    expect(address).toBe("127.0.0.1");
    expect(Date.parse(since)).toBeGreaterThan(before - 1_000);
  }
  getSocket(first).close();
  expect(await waitForConnections(owner, 1)).toEqual([connections[0]]);
});

test("its id is the one in the agent's welcome", async () => {
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner);
  const agent = await startAgent(wireBytes);
  const [connection] = await waitForConnections(owner, 1);
  const { welcome } = agent.events as HttpTunnel;
  expect(connection!.agent_id).toBe(welcome!.agentId);
});

test("a disconnected agent disappears at once, and reconnects after about five seconds", async () => {
  const owner = await api.owner();
  const admin = await api.colleague(owner, "admin");
  const { wireBytes } = await mintToken(owner);
  const agent = await startAgent(wireBytes);
  const [connection] = await waitForConnections(owner, 1);
  const retryDelays: number[] = [];
  const { setTimeout } = globalThis;
  using _timers = vi
    .spyOn(globalThis, "setTimeout")
    .mockImplementation((run: () => void, ms = 0, ...args) => {
      const isRetry = ms >= ENDED_RETRY_MIN_MS && ms <= ENDED_RETRY_MAX_MS;
      if (isRetry) retryDelays.push(ms);
      return setTimeout(run, isRetry ? ms / 20 : ms, ...args);
    });
  const { status, body } = await admin.delete(`/connections/${connection!.agent_id}`);
  expect([status, body]).toEqual([200, { ok: true }]);
  expect(await listConnections(owner)).toEqual([]);
  expect((await owner.delete(`/connections/${connection!.agent_id}`)).status).toBe(404);

  const [reconnected] = await waitForConnections(owner, 1);
  expect(retryDelays).toHaveLength(1);
  expect(reconnected!.agent_id).not.toBe(connection!.agent_id);
  expect(reconnected!.tunnels).toEqual(connection!.tunnels);
  const { body: events } = await owner.get<AuditEvent[]>("/events?action=connection_ended");
  expect(events).toMatchObject([
    {
      resourceType: "connection",
      resourceId: connection!.agent_id,
      userEmail: admin.email,
      metadata: { tunnelId: agent.tunnelId },
    },
  ]);
});

test("an agent whose token was revoked does not reconnect", async () => {
  const owner = await api.owner();
  const { wireBytes, nonce } = await mintToken(owner);
  const agent = await api.connectAgent(wireBytes, { port: 1 });
  const closed = once(getSocket(agent), "close");
  await waitForConnections(owner, 1);
  await owner.delete(`/tokens/${nonce}`);
  expect((await closed)[0]).toBe(CLOSE.unauthorized);
  expect(await waitForConnections(owner, 0)).toEqual([]);
  expect((await api.connectAgent(wireBytes, { port: 1 })).code).toBe(CLOSE.unauthorized);
});

test("only admins and owners end connections, and only of their own organization", async () => {
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner);
  await api.connectAgent(wireBytes, { port: 1 });
  const [connection] = await waitForConnections(owner, 1);
  const path = `/connections/${connection!.agent_id}`;
  for (const role of ["viewer", "member"] as const) {
    const colleague = await api.colleague(owner, role);
    expect((await colleague.delete(path)).status).toBe(403);
    expect(await listConnections(colleague)).toEqual([connection]);
  }
  const otherOwner = await api.owner();
  expect((await otherOwner.delete(path)).status).toBe(404);
  expect(await listConnections(otherOwner)).toEqual([]);
  expect(await listConnections(owner)).toEqual([connection]);
});

test("connections and metrics are unavailable while the organization's object does not answer", async () => {
  const owner = await api.owner();
  await damageObject(api.server, "Organization", owner.orgId);
  const unavailable = { status: 503, body: { error: "unavailable" } };
  for (const path of ["/connections", "/metrics", "/metrics/prometheus"])
    expect(await owner.get(path)).toMatchObject(unavailable);
  const ended = await owner.delete(`/connections/${crypto.randomUUID()}`);
  expect(ended).toMatchObject(unavailable);
});

test("after a kill -9 of workerd no disconnected agent is listed", async () => {
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner);
  // These agents do not reconnect by themselves.
  for (let port = 1; port <= 3; port++) await api.connectAgent(wireBytes, { port });
  const before = await waitForConnections(owner, 3);
  const workerd = await api.server.getPid("workerd");
  process.kill(workerd, "SIGKILL");
  const first = await waitUntil(async () => {
    const answer = await owner.get<Connection[]>("/connections").catch(() => undefined);
    return answer?.status === 200 && answer.body;
  });
  expect(before).toHaveLength(3);
  expect(first).toEqual([]);
  await api.connectAgent(wireBytes, { port: 1 });
  await waitForConnections(owner, 1);
});
