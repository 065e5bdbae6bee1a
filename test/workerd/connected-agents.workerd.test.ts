import { abortAllDurableObjects, evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { HEARTBEAT_TIMEOUT_MS } from "../../protocol/limits.ts";
import {
  PRESENCE_FRESH_MS,
  DEPARTURE_RETENTION_MS,
} from "../../durable-objects/organization/connected-agents.ts";
import { CLOSE } from "../../protocol/wire/close-codes.ts";
import { bindings } from "../harness/workerd/live-tunnel.ts";
import { agentIds, TestOrganization } from "../harness/workerd/roster.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

describe("the list of connections", () => {
  test("has every agent that is connected, with its tunnel, its address and since when", async () => {
    const org = new TestOrganization();
    const before = Date.now();
    const { tunnel, agent } = await org.agent();
    await vi.waitFor(async () => expect(await org.listed()).toHaveLength(1), WAIT_OPTIONS);
    const [entry] = await org.stub.listConnections();
    expect(entry).toMatchObject({
      agentId: agent.welcome!.agentId,
      remoteIp: "192.0.2.1",
      tunnelId: tunnel.id,
    });
    expect(entry!.connectedAtMs).toBeGreaterThanOrEqual(before - 1);
    expect(entry!.connectedAtMs).toBeLessThanOrEqual(Date.now() + 1);
  });

  test("has those of its own organization alone", async () => {
    const [one, other] = [new TestOrganization(), new TestOrganization()];
    const mine = await one.agent();
    const theirs = await other.agent();
    await vi.waitFor(async () => expect(await one.listed()).toEqual(agentIds(mine)), WAIT_OPTIONS);
    await vi.waitFor(async () => expect(await other.listed()).toEqual(agentIds(theirs)), WAIT_OPTIONS);
  });

  test("has the agent that took over, and not the one before", async () => {
    const org = new TestOrganization();
    const first = await org.agent();
    const second = await org.agent(first.tunnel);
    expect((await first.agent.closed).code).toBe(CLOSE.replaced);
    await vi.waitFor(async () => expect(await org.listed()).toEqual(agentIds(second)), WAIT_OPTIONS);
  });

  test("loses an agent that closed its connection, and one whose tunnel ended", async () => {
    const org = new TestOrganization();
    const [gone, deleted, staying] = [await org.agent(), await org.agent(), await org.agent()];
    await vi.waitFor(async () => expect(await org.listed()).toHaveLength(3), WAIT_OPTIONS);
    gone.agent.socket.close(1000, "bye");
    await deleted.tunnel.stub.retire();
    await vi.waitFor(async () => expect(await org.listed()).toEqual(agentIds(staying)), WAIT_OPTIONS);
  });

  test("no longer has an agent from when the call that ended its connection returns", async () => {
    const org = new TestOrganization();
    const [ended, staying] = [await org.agent(), await org.agent()];
    await vi.waitFor(async () => expect(await org.listed()).toHaveLength(2), WAIT_OPTIONS);
    const { agentId } = ended.agent.welcome!;
    expect(await org.stub.findTunnelOfAgent(agentId)).toBe(ended.tunnel.id);
    await ended.tunnel.stub.disconnectAgent(agentId);
    expect(await org.listed()).toEqual(agentIds(staying));
    expect(await org.stub.findTunnelOfAgent(agentId)).toBeNull();
    expect((await ended.agent.closed).code).toBe(CLOSE.connection_ended);
    // It is the connection that ended: the next one is as good as any.
    const back = await org.agent(ended.tunnel);
    await vi.waitFor(
      async () => expect(await org.listed()).toEqual(agentIds(back, staying)),
      WAIT_OPTIONS,
    );
  });

  test("ending a connection that is over already touches nobody", async () => {
    const org = new TestOrganization();
    const { tunnel, agent } = await org.agent();
    await tunnel.stub.disconnectAgent(crypto.randomUUID());
    await vi.waitFor(async () => expect(await org.listed()).toEqual(agentIds({ agent })), WAIT_OPTIONS);
  });

  test("is the same after everybody slept", async () => {
    const org = new TestOrganization();
    const agents = [await org.agent(), await org.agent()];
    await vi.waitFor(async () => expect(await org.listed()).toHaveLength(2), WAIT_OPTIONS);
    await org.sleep();
    for (const { tunnel } of agents) await tunnel.sleep();
    expect(await org.listed()).toEqual(agentIds(...agents));
  });
});

describe("nobody is listed who is not there", () => {
  test("after a tunnel's object went down with its agent, and nobody said so", async () => {
    const org = new TestOrganization();
    const { tunnel } = await org.agent();
    const staying = await org.agent();
    await vi.waitFor(async () => expect(await org.listed()).toHaveLength(2), WAIT_OPTIONS);
    await evictDurableObject(tunnel.stub, { webSockets: "close" });
    await org.sleep();
    expect(await org.listed()).toEqual(agentIds(staying));
  });

  test("after everything went down at once", async () => {
    const org = new TestOrganization();
    for (let agents = 0; agents < 3; agents++) await org.agent();
    await vi.waitFor(async () => expect(await org.listed()).toHaveLength(3), WAIT_OPTIONS);
    await abortAllDurableObjects();
    expect(await bindings.ORGANIZATION.getByName(org.id).listConnections()).toEqual([]);
  });

  test("after an agent fell silent, once its heartbeats are overdue", async () => {
    const org = new TestOrganization();
    await org.agent();
    await vi.waitFor(async () => expect(await org.listed()).toHaveLength(1), WAIT_OPTIONS);
    vi.useFakeTimers({ now: Date.now() + HEARTBEAT_TIMEOUT_MS + PRESENCE_FRESH_MS + 1_000 });
    expect(await org.listed()).toEqual([]);
  });
});

describe("news", () => {
  const agent = { agentId: crypto.randomUUID(), remoteIp: "192.0.2.9", connectedAtMs: 1 };

  test("that comes late changes nothing", async () => {
    const { stub } = new TestOrganization();
    const tunnelId = crypto.randomUUID();
    await stub.reportPresence({ tunnelId, sequence: 1, agent });
    await stub.reportPresence({ tunnelId, sequence: 2, agent: null });
    await stub.reportPresence({ tunnelId, sequence: 1, agent });
    expect(await stub.listConnections()).toEqual([]);
    await stub.reportPresence({ tunnelId, sequence: 3, agent });
    expect(await stub.listConnections()).toHaveLength(1);
  });

  test("of an agent that left is forgotten in the end", async () => {
    const { stub } = new TestOrganization();
    await stub.reportPresence({ tunnelId: crypto.randomUUID(), sequence: 2, agent: null });
    const rows = () =>
      runInDurableObject(stub, (_, { storage }) => [
        ...storage.sql.exec("select tunnel_id from roster"),
      ]);
    await stub.listConnections();
    expect(await rows()).toHaveLength(1);
    vi.useFakeTimers({ now: Date.now() + DEPARTURE_RETENTION_MS + 1_000 });
    await stub.listConnections();
    expect(await rows()).toHaveLength(0);
  });

  test("that did not arrive is told again", async () => {
    const org = new TestOrganization();
    const { tunnel, agent: connected } = await org.agent();
    await vi.waitFor(async () => expect(await org.listed()).toHaveLength(1), WAIT_OPTIONS);
    // What an organization knows that lost its news.
    await runInDurableObject(org.stub, (_, { storage }) => storage.sql.exec("delete from roster"));
    await runInDurableObject(tunnel.stub, (_, { storage }) => {
      const kept = storage.kv.get<object>("attendance")!;
      storage.kv.put("attendance", { ...kept, isTold: false });
      return storage.setAlarm(Date.now());
    });
    await vi.waitFor(
      async () => expect(await org.listed()).toEqual(agentIds({ agent: connected })),
      WAIT_OPTIONS,
    );
  });
});
