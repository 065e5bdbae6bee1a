/** Who is connected, as the API tells it, on a whole server. */
import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { expose, type ExposedTunnel } from "../../../agent/expose.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { ENDED_RETRY_MIN_MS } from "../../../agent/tunnel-connection.ts";
import type { AuditEvent } from "../../../protocol/schemas/organizations/audit.ts";
import type { Connection } from "../../../protocol/schemas/tunnels/connections.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import {
  mintToken,
  startApi,
  waitUntil,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await startApi();
});
const agents: ExposedTunnel[] = [];
afterAll(async () => {
  await Promise.all(agents.map((agent) => agent.close()));
  await api.stop();
});

/** An agent that comes back by itself. */
async function exposed(wireBytes: string): Promise<ExposedTunnel> {
  const token = Buffer.from(wireBytes, "base64");
  const agent = await expose({ server: api.server.url, token, port: 1 });
  agents.push(agent);
  return agent;
}

async function listed(by: Person): Promise<Connection[]> {
  return (await by.get<Connection[]>("/connections")).body;
}

/** Waits until as many are listed. */
function listedWhen(by: Person, count: number): Promise<Connection[]> {
  return waitUntil(async () => {
    const connections = await listed(by);
    return connections.length === count && connections;
  });
}

test("a connection is listed with its agent, its tunnel and its address, newest first", async () => {
  const owner = await api.owner();
  expect(await listed(owner)).toEqual([]);
  const { wireBytes } = await mintToken(owner);
  const before = Date.now();
  const first = await api.connectAgent(wireBytes, { port: 1 });
  await listedWhen(owner, 1);
  await api.connectAgent(wireBytes, { port: 2 });
  const connections = await listedWhen(owner, 2);
  const { body: tunnels } = await owner.get<Tunnel[]>("/tunnels");
  expect(connections.map(({ tunnels }) => tunnels)).toEqual(tunnels.map(({ id }) => [id]));
  for (const { remote_ip: address, connected_at: since } of connections) {
    expect(address).toBe("127.0.0.1");
    expect(Date.parse(since)).toBeGreaterThan(before - 1_000);
  }
  first.socket!.close();
  expect(await listedWhen(owner, 1)).toEqual([connections[0]]);
});

test("its id is the one in the agent's welcome", async () => {
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner);
  const agent = await exposed(wireBytes);
  const [connection] = await listedWhen(owner, 1);
  expect(connection!.agent_id).toBe(agent.events.welcome!.agentId);
});

test("a disconnected agent disappears at once, and reconnects after about five seconds", async () => {
  const owner = await api.owner();
  const admin = await api.colleague(owner, "admin");
  const { wireBytes } = await mintToken(owner);
  const agent = await exposed(wireBytes);
  const [connection] = await listedWhen(owner, 1);
  const endedAt = performance.now();
  const { status, body } = await admin.delete(`/connections/${connection!.agent_id}`);
  expect([status, body]).toEqual([200, { ok: true }]);
  expect(await listed(owner)).toEqual([]);
  expect((await owner.delete(`/connections/${connection!.agent_id}`)).status).toBe(404);

  const [back] = await listedWhen(owner, 1);
  expect(performance.now() - endedAt).toBeGreaterThan(ENDED_RETRY_MIN_MS - 100);
  expect(back!.agent_id).not.toBe(connection!.agent_id);
  expect(back!.tunnels).toEqual(connection!.tunnels);
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
  const closed = once(agent.socket!, "close");
  await listedWhen(owner, 1);
  await owner.delete(`/tokens/${nonce}`);
  expect((await closed)[0]).toBe(CLOSE.unauthorized);
  expect(await listedWhen(owner, 0)).toEqual([]);
  expect((await api.connectAgent(wireBytes, { port: 1 })).code).toBe(CLOSE.unauthorized);
});

test("only admins and owners end connections, and only of their own organization", async () => {
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner);
  await api.connectAgent(wireBytes, { port: 1 });
  const [connection] = await listedWhen(owner, 1);
  const path = `/connections/${connection!.agent_id}`;
  for (const role of ["viewer", "member"] as const) {
    const colleague = await api.colleague(owner, role);
    expect((await colleague.delete(path)).status).toBe(403);
    expect(await listed(colleague)).toEqual([connection]);
  }
  const stranger = await api.owner();
  expect((await stranger.delete(path)).status).toBe(404);
  expect(await listed(stranger)).toEqual([]);
  expect(await listed(owner)).toEqual([connection]);
});

test("after a kill -9 of workerd no disconnected agent is listed", async () => {
  const owner = await api.owner();
  const { wireBytes } = await mintToken(owner);
  // These do not come back by themselves.
  for (let port = 1; port <= 3; port++) await api.connectAgent(wireBytes, { port });
  const before = await listedWhen(owner, 3);
  const workerd = await api.server.getPid("workerd");
  process.kill(workerd, "SIGKILL");
  const first = await waitUntil(async () => {
    const answer = await owner.get<Connection[]>("/connections").catch(() => undefined);
    return answer?.status === 200 && answer.body;
  });
  expect(before).toHaveLength(3);
  expect(first).toEqual([]);
  await api.connectAgent(wireBytes, { port: 1 });
  await listedWhen(owner, 1);
});
