import { evictDurableObject, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { HEARTBEAT_TIMEOUT_MS } from "../../protocol/limits.ts";
import {
  ConnectedAgents,
  createReportTimes,
  DEPARTURE_RETENTION_MS,
  PRESENCE_FRESH_MS,
  PRESENCE_REFRESH_MAX_REPORTED,
  REPORT_TIMES_MAX_TUNNELS,
} from "../../durable-objects/organization/connected-agents.ts";
import { CLOSE } from "../../protocol/wire/close-codes.ts";
import { PING, PONG } from "../../protocol/wire/frames.ts";
import { bindings } from "../harness/workerd/live-tunnel.ts";
import { getAgentIds, TestOrganization } from "../harness/workerd/test-organization.ts";
import { WAIT_OPTIONS } from "../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

/** Reports that arrive from now on are stale after `vi.useRealTimers()`. */
function setClockBack(): void {
  vi.useFakeTimers({ now: Date.now() - PRESENCE_FRESH_MS - 1_000, toFake: ["Date"] });
}

/** Ends an object as a crash does. The call that aborts it fails with it. */
async function abortObject(stub: DurableObjectStub): Promise<void> {
  const aborted = runInDurableObject(stub, (_, context) => context.abort("crash"));
  await expect(aborted).rejects.toThrow("crash");
}

describe("the list of connections", () => {
  test("has every connected agent with its tunnel, its address and its connection time", async () => {
    const org = new TestOrganization();
    const before = Date.now();
    const { tunnel, agent } = await org.agent();
    await vi.waitFor(async () => expect(await org.listAgentIds()).toHaveLength(1), WAIT_OPTIONS);
    const [entry] = await org.stub.listConnections();
    expect(entry).toMatchObject({
      agentId: agent.welcome!.agentId,
      remoteIp: "192.0.2.1",
      tunnelId: tunnel.id,
    });
    expect(entry!.connectedAtMs).toBeGreaterThanOrEqual(before - 1);
    expect(entry!.connectedAtMs).toBeLessThanOrEqual(Date.now() + 1);
  });

  test("asks the tunnel of a pool once for all its agents", async () => {
    const org = new TestOrganization();
    const { tunnel } = await org.agent();
    await vi.waitFor(async () => expect(await org.listAgentIds()).toHaveLength(1), WAIT_OPTIONS);
    const [agent] = await org.stub.listConnections();
    const pool = [agent!, { ...agent!, agentId: crypto.randomUUID() }];
    const stale = await runInDurableObject(org.stub, (_, { storage }) =>
      new ConnectedAgents(storage.sql, createReportTimes()).findStaleTunnels(pool, Date.now()),
    );
    expect(stale).toEqual([tunnel.id]);
  });

  test("wakes at most a hundred tunnels that have reported before, those with the oldest reports", async () => {
    const { stub } = new TestOrganization();
    const tunnelIds = Array.from({ length: PRESENCE_REFRESH_MAX_REPORTED + 20 }, () =>
      crypto.randomUUID(),
    );
    const { asked, askedNext, afterRestart } = await runInDurableObject(stub, (_, { storage }) => {
      const connected = new ConnectedAgents(storage.sql, createReportTimes());
      for (const [i, tunnelId] of tunnelIds.entries()) {
        const agent = { agentId: crypto.randomUUID(), remoteIp: "192.0.2.9", connectedAtMs: i };
        connected.apply({ tunnelId, sequence: 1, agents: [agent] }, i);
      }
      const nowMs = tunnelIds.length + PRESENCE_FRESH_MS;
      const restarted = new ConnectedAgents(storage.sql, createReportTimes());
      const findStale = () => connected.findStaleTunnels(connected.list(), nowMs);
      const asked = findStale();
      // None of them answers.
      for (const tunnelId of asked) connected.postpone(tunnelId, nowMs);
      return {
        asked,
        askedNext: findStale(),
        afterRestart: restarted.findStaleTunnels(restarted.list(), nowMs),
      };
    });
    expect(asked).toEqual(tunnelIds.slice(0, PRESENCE_REFRESH_MAX_REPORTED));
    expect(askedNext).toEqual(tunnelIds.slice(PRESENCE_REFRESH_MAX_REPORTED));
    expect(afterRestart.toSorted()).toEqual(tunnelIds.toSorted());
  });

  test("wakes no more tunnels after the organization's object was evicted", async () => {
    const org = new TestOrganization();
    const connect = () => {
      const agent = { agentId: crypto.randomUUID(), remoteIp: "192.0.2.9", connectedAtMs: 1 };
      return org.stub.reportPresence({
        tunnelId: crypto.randomUUID(),
        sequence: 1,
        agents: [agent],
      });
    };
    const count = PRESENCE_REFRESH_MAX_REPORTED + 20;
    setClockBack();
    await Promise.all(Array.from({ length: count }, connect));
    await org.sleep();
    // A tunnel that is asked has no agent, and leaves the list.
    expect(await org.listAgentIds()).toHaveLength(count);
    await org.sleep();
    vi.useRealTimers();
    expect(await org.listAgentIds()).toHaveLength(20);
  });

  test("wakes no more tunnels a long time after their last report", async () => {
    const { stub } = new TestOrganization();
    const agent = { agentId: crypto.randomUUID(), remoteIp: "192.0.2.9", connectedAtMs: 1 };
    const tunnelIds = Array.from({ length: PRESENCE_REFRESH_MAX_REPORTED + 20 }, () =>
      crypto.randomUUID(),
    );
    const stale = await runInDurableObject(stub, (_, { storage }) => {
      const connected = new ConnectedAgents(storage.sql, createReportTimes());
      for (const tunnelId of tunnelIds)
        connected.apply({ tunnelId, sequence: 1, agents: [agent] }, 0);
      const nowMs = DEPARTURE_RETENTION_MS + 1;
      connected.removeDeparted(nowMs);
      return connected.findStaleTunnels(connected.list(), nowMs);
    });
    expect(stale).toHaveLength(PRESENCE_REFRESH_MAX_REPORTED);
  });

  test("asks a tunnel when the clock was set back", async () => {
    const { stub } = new TestOrganization();
    const tunnelId = crypto.randomUUID();
    const agent = { agentId: crypto.randomUUID(), remoteIp: "192.0.2.9", connectedAtMs: 1 };
    const stale = await runInDurableObject(stub, (_, { storage }) => {
      const connected = new ConnectedAgents(storage.sql, createReportTimes());
      connected.apply({ tunnelId, sequence: 1, agents: [agent] }, DEPARTURE_RETENTION_MS);
      return connected.findStaleTunnels(connected.list(), 0);
    });
    expect(stale).toEqual([tunnelId]);
  });

  test("needs the last reports of a bounded number of tunnels in memory, and of none that has left", async () => {
    const { stub } = new TestOrganization();
    const reportTimes = createReportTimes();
    await runInDurableObject(stub, (_, { storage }) => {
      const connected = new ConnectedAgents(storage.sql, reportTimes);
      const depart = () =>
        connected.apply({ tunnelId: crypto.randomUUID(), sequence: 1, agents: [] }, 0);
      depart();
      connected.removeDeparted(DEPARTURE_RETENTION_MS + 1);
      expect(reportTimes.size).toBe(0);
      for (let i = 0; i <= REPORT_TIMES_MAX_TUNNELS; i++) reportTimes.set(`${i}`, 0);
      depart();
    });
    expect(reportTimes.size).toBe(REPORT_TIMES_MAX_TUNNELS);
  });

  test("has only agents of its own organization", async () => {
    const [one, other] = [new TestOrganization(), new TestOrganization()];
    const ownAgent = await one.agent();
    const otherAgent = await other.agent();
    await vi.waitFor(
      async () => expect(await one.listAgentIds()).toEqual(getAgentIds(ownAgent)),
      WAIT_OPTIONS,
    );
    await vi.waitFor(
      async () => expect(await other.listAgentIds()).toEqual(getAgentIds(otherAgent)),
      WAIT_OPTIONS,
    );
  });

  test("has the agent that took over, not the replaced one", async () => {
    const org = new TestOrganization();
    const first = await org.agent();
    const second = await org.agent(first.tunnel);
    expect((await first.agent.closed).code).toBe(CLOSE.replaced);
    await vi.waitFor(
      async () => expect(await org.listAgentIds()).toEqual(getAgentIds(second)),
      WAIT_OPTIONS,
    );
  });

  test("loses an agent that disconnected, and one whose tunnel was deleted", async () => {
    const org = new TestOrganization();
    const [disconnected, deleted, staying] = [
      await org.agent(),
      await org.agent(),
      await org.agent(),
    ];
    await vi.waitFor(async () => expect(await org.listAgentIds()).toHaveLength(3), WAIT_OPTIONS);
    disconnected.agent.socket.close(1000, "bye");
    await deleted.tunnel.stub.retire();
    await vi.waitFor(
      async () => expect(await org.listAgentIds()).toEqual(getAgentIds(staying)),
      WAIT_OPTIONS,
    );
  });

  test("does not have an agent after the call that ended its connection returns", async () => {
    const org = new TestOrganization();
    const [ended, staying] = [await org.agent(), await org.agent()];
    await vi.waitFor(async () => expect(await org.listAgentIds()).toHaveLength(2), WAIT_OPTIONS);
    const { agentId } = ended.agent.welcome!;
    expect(await org.stub.findTunnelOfAgent(agentId)).toBe(ended.tunnel.id);
    await ended.tunnel.stub.disconnectAgent(agentId);
    expect(await org.listAgentIds()).toEqual(getAgentIds(staying));
    expect(await org.stub.findTunnelOfAgent(agentId)).toBeNull();
    expect((await ended.agent.closed).code).toBe(CLOSE.connection_ended);
    // Only that connection was ended: the agent may connect again.
    const back = await org.agent(ended.tunnel);
    await vi.waitFor(
      async () => expect(await org.listAgentIds()).toEqual(getAgentIds(back, staying)),
      WAIT_OPTIONS,
    );
  });

  test("is not changed by a call that ends an unknown connection", async () => {
    const org = new TestOrganization();
    const { tunnel, agent } = await org.agent();
    await tunnel.stub.disconnectAgent(crypto.randomUUID());
    await vi.waitFor(
      async () => expect(await org.listAgentIds()).toEqual(getAgentIds({ agent })),
      WAIT_OPTIONS,
    );
  });

  test("is the same after all objects hibernated", async () => {
    const org = new TestOrganization();
    const agents = [await org.agent(), await org.agent()];
    await vi.waitFor(async () => expect(await org.listAgentIds()).toHaveLength(2), WAIT_OPTIONS);
    await org.sleep();
    for (const { tunnel } of agents) await tunnel.sleep();
    expect(await org.listAgentIds()).toEqual(getAgentIds(...agents));
  });
});

describe("no agent is listed that is not connected", () => {
  test("after a tunnel's object was lost with its agent, without a report", async () => {
    const org = new TestOrganization();
    setClockBack();
    const { tunnel } = await org.agent();
    const staying = await org.agent();
    await vi.waitFor(async () => expect(await org.listAgentIds()).toHaveLength(2), WAIT_OPTIONS);
    await evictDurableObject(tunnel.stub, { webSockets: "close" });
    vi.useRealTimers();
    staying.agent.socket.send(PING);
    expect(await staying.agent.nextMessage()).toBe(PONG);
    expect(await org.listAgentIds()).toEqual(getAgentIds(staying));
  });

  test("after all of its objects were lost at once", async () => {
    const org = new TestOrganization();
    setClockBack();
    const agents = [await org.agent(), await org.agent(), await org.agent()];
    await vi.waitFor(async () => expect(await org.listAgentIds()).toHaveLength(3), WAIT_OPTIONS);
    // `abortAllDurableObjects()` would also reject what the objects of earlier files still wait for.
    await Promise.all([org.stub, ...agents.map(({ tunnel }) => tunnel.stub)].map(abortObject));
    vi.useRealTimers();
    expect(await bindings.ORGANIZATION.getByName(org.id).listConnections()).toEqual([]);
  });

  test("after an agent's heartbeats are overdue", async () => {
    const org = new TestOrganization();
    await org.agent();
    await vi.waitFor(async () => expect(await org.listAgentIds()).toHaveLength(1), WAIT_OPTIONS);
    vi.useFakeTimers({ now: Date.now() + HEARTBEAT_TIMEOUT_MS + PRESENCE_FRESH_MS + 1_000 });
    expect(await org.listAgentIds()).toEqual([]);
  });
});

describe("a report", () => {
  const agent = { agentId: crypto.randomUUID(), remoteIp: "192.0.2.9", connectedAtMs: 1 };

  test("that arrives late changes nothing", async () => {
    const { stub } = new TestOrganization();
    const tunnelId = crypto.randomUUID();
    await stub.reportPresence({ tunnelId, sequence: 1, agents: [agent] });
    await stub.reportPresence({ tunnelId, sequence: 2, agents: [] });
    await stub.reportPresence({ tunnelId, sequence: 1, agents: [agent] });
    expect(await stub.listConnections()).toEqual([]);
    await stub.reportPresence({ tunnelId, sequence: 3, agents: [agent] });
    expect(await stub.listConnections()).toHaveLength(1);
  });

  test("of a departure is finally removed", async () => {
    const { stub } = new TestOrganization();
    await stub.reportPresence({ tunnelId: crypto.randomUUID(), sequence: 2, agents: [] });
    const rows = () =>
      runInDurableObject(stub, (_, { storage }) => [
        ...storage.sql.exec("select tunnel_id from presences"),
      ]);
    await stub.listConnections();
    expect(await rows()).toHaveLength(1);
    vi.useFakeTimers({ now: Date.now() + DEPARTURE_RETENTION_MS + 1_000 });
    await stub.listConnections();
    expect(await rows()).toHaveLength(0);
  });

  test("of a departure is finally removed even if the list is never read, and its tunnel is not notified", async () => {
    const { stub } = new TestOrganization();
    const [departed, connected] = [crypto.randomUUID(), crypto.randomUUID()];
    await stub.reportPresence({ tunnelId: departed, sequence: 2, agents: [] });
    const list = <Result>(read: (agents: ConnectedAgents) => Result) =>
      runInDurableObject(stub, (_, { storage }) =>
        read(new ConnectedAgents(storage.sql, createReportTimes())),
      );
    expect(await list((agents) => agents.listTunnelIds(Date.now()))).toEqual([departed]);
    vi.useFakeTimers({ now: Date.now() + DEPARTURE_RETENTION_MS + 1_000 });
    expect(await list((agents) => agents.listTunnelIds(Date.now()))).toEqual([]);
    await stub.reportPresence({ tunnelId: connected, sequence: 1, agents: [agent] });
    const stored = await runInDurableObject(stub, (_, { storage }) => [
      ...storage.sql.exec("select tunnel_id from presences"),
    ]);
    expect(stored).toEqual([{ tunnel_id: connected }]);
  });

  test("that did not arrive is sent again", async () => {
    const org = new TestOrganization();
    const { tunnel, agent: connected } = await org.agent();
    await vi.waitFor(async () => expect(await org.listAgentIds()).toHaveLength(1), WAIT_OPTIONS);
    // As if the organization had missed the report.
    await runInDurableObject(org.stub, (_, { storage }) =>
      storage.sql.exec("delete from presences"),
    );
    await runInDurableObject(tunnel.stub, (_, { storage }) => {
      const stored = storage.kv.get<object>("attendance")!;
      storage.kv.put("attendance", { ...stored, isTold: false });
      return storage.setAlarm(Date.now());
    });
    await vi.waitFor(
      async () => expect(await org.listAgentIds()).toEqual(getAgentIds({ agent: connected })),
      WAIT_OPTIONS,
    );
  });
});

test("the agents that an earlier version has stored are listed", async () => {
  const { stub } = new TestOrganization();
  const [tunnelId, agentId] = [crypto.randomUUID(), crypto.randomUUID()];
  await runInDurableObject(stub, (_, { storage }) => {
    storage.sql.exec("drop table presences");
    storage.sql.exec(`create table roster (tunnel_id text primary key, sequence integer not null,
      agent_id text, remote_ip text, connected_at_ms integer, told_at_ms integer not null) without rowid`);
    const insert = "insert into roster values (?, 3, ?, ?, ?, 7)";
    storage.sql.exec(insert, tunnelId, agentId, "192.0.2.9", 5);
    storage.sql.exec(insert, crypto.randomUUID(), null, null, null);
  });
  await evictDurableObject(stub);
  await stub.reportPresence({ tunnelId, sequence: 3, agents: [] });
  expect(await stub.listConnections()).toEqual([
    { tunnelId, agentId, remoteIp: "192.0.2.9", connectedAtMs: 5 },
  ]);
});
