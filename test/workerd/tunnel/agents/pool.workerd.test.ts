/** Several agents that serve one tunnel as a pool. */
import { afterEach, describe, expect, test, vi } from "vitest";
import { STATE_FRAME_COST } from "../../../../durable-objects/tunnel/agents/agent-link.ts";
import { STRAY_FRAMES_PER_SECOND_MAX } from "../../../../durable-objects/tunnel/stray-frames.ts";
import { HEARTBEAT_LATE_MS } from "../../../../durable-objects/tunnel/agents/pool.ts";
import { POOL_AGENTS_MAX } from "../../../../protocol/limits.ts";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import {
  FLAG,
  FRAME,
  parseJsonPayload,
  RESET,
  STATUS_CAPABILITY,
  type Hello,
} from "../../../../protocol/wire/frames.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { setMaintenance } from "../../../harness/workerd/gated-tunnel.ts";
import { HELLO, LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";
import { ShardedTunnel } from "../../../harness/workerd/sharded-tunnel.ts";

afterEach(() => void vi.useRealTimers());

function toHello({ healthy = true, instance = crypto.randomUUID() } = {}): Hello {
  return { ...HELLO, pool: { instance, healthy } };
}

/** Two agents, of which the first one has connected first. */
async function openPool(): Promise<{ tunnel: LiveTunnel; agents: [TestAgent, TestAgent] }> {
  const tunnel = new LiveTunnel();
  const first = await tunnel.agent({}, toHello());
  return { tunnel, agents: [first, await tunnel.agent({}, toHello())] };
}

function setHealth(agent: TestAgent, healthy: boolean): void {
  agent.send((writer) => writer.writeJson(FRAME.health, 0, 0, { healthy }));
}

/** Waits until the object has read what the agents sent before. */
async function waitForHealth(tunnel: LiveTunnel, isHealthy: boolean[]): Promise<void> {
  await vi.waitFor(async () => {
    const states = await tunnel.stub.listAgents();
    expect(states.map((state) => state.isHealthy)).toEqual(isHealthy);
  }, WAIT_OPTIONS);
}

async function refuse(tunnel: LiveTunnel, hello: Hello, tokenNonce = "token-a") {
  const agent = await tunnel.connect({ tokenNonce });
  agent.send((writer) => writer.writeJson(FRAME.hello, 0, 0, hello));
  return agent.closed;
}

describe("agents that ask for a pool", () => {
  test("serve together, and each idle one gets requests in turn", async () => {
    const { tunnel, agents } = await openPool();
    for (const agent of [...agents, ...agents]) {
      const response = tunnel.visit("/");
      agent.respond((await agent.nextRequest()).stream, 200, [], "ok");
      expect(await (await response).text()).toBe("ok");
    }
  });

  test("get a request each according to what is in flight", async () => {
    const { tunnel, agents } = await openPool();
    const [first, second] = agents;
    const slow = tunnel.visit("/slow");
    const { stream } = await first.nextRequest();
    for (let visit = 0; visit < 3; visit++) {
      const response = tunnel.visit("/");
      second.respond((await second.nextRequest()).stream, 200, [], "ok");
      await (await response).text();
    }
    expect(first.pendingFrames).toBe(0);
    first.respond(stream, 204);
    expect((await slow).status).toBe(204);
  });

  test("are at most as many as the limit, and a reconnecting one replaces only itself", async () => {
    const tunnel = new LiveTunnel();
    const instance = crypto.randomUUID();
    const first = await tunnel.agent({}, toHello({ instance }));
    for (let at = 1; at < POOL_AGENTS_MAX; at++) await tunnel.agent({}, toHello());
    expect(await refuse(tunnel, toHello())).toEqual({
      code: CLOSE.quota_exceeded,
      reason: `quota_exceeded: ${POOL_AGENTS_MAX} agents serve this tunnel already [pool_full]`,
    });
    await tunnel.agent({}, toHello({ instance }));
    expect((await first.closed).code).toBe(CLOSE.replaced);
    expect(await tunnel.stub.listAgents()).toHaveLength(POOL_AGENTS_MAX);
  });

  test("are not joined by an agent that does not ask for it, or that has another token", async () => {
    const { tunnel } = await openPool();
    const alone = await refuse(tunnel, HELLO);
    expect(alone.code).toBe(CLOSE.duplicate_name);
    expect(alone.reason).toMatch(/--pool/);
    expect((await refuse(tunnel, toHello(), "token-b")).code).toBe(CLOSE.duplicate_name);
    expect(await tunnel.stub.listAgents()).toHaveLength(2);
  });

  test("replace one that serves alone, as any newer agent does", async () => {
    const tunnel = new LiveTunnel();
    const alone = await tunnel.agent();
    await tunnel.agent({}, toHello());
    expect((await alone.closed).code).toBe(CLOSE.replaced);
  });

  test("are told how many they are", async () => {
    const tunnel = new LiveTunnel();
    const hello = { ...toHello(), capabilities: [STATUS_CAPABILITY] };
    const first = await tunnel.agent({}, hello);
    const sizes = async () => parseJsonPayload((await first.next(FRAME.status)).payload);
    expect(await sizes()).toEqual({ agents: 1 });
    const second = await tunnel.agent({}, toHello());
    expect(await sizes()).toEqual({ agents: 2 });
    second.socket.close(1000);
    expect(await sizes()).toEqual({ agents: 1 });
  });

  test("share the rate of their token", async () => {
    const tunnel = new LiveTunnel();
    const admission = { bandwidthLimitMbps: 1 };
    const [first, second] = [
      await tunnel.agent(admission, toHello()),
      await tunnel.agent(admission, toHello()),
    ];
    const large = tunnel.visit("/large");
    // It takes 480 ms at this rate, of which a burst of 200 ms is free: the other agent's response waits for the rest.
    first.respond((await first.nextRequest()).stream, 200, [], "x".repeat(60_000));
    await (await large).text();
    const startedAtMs = Date.now();
    const small = tunnel.visit("/small");
    second.respond((await second.nextRequest()).stream, 200, [], "x");
    await (await small).text();
    expect(Date.now() - startedAtMs).toBeGreaterThan(100);
  });

  test("are all reported to the organization", async () => {
    const { tunnel, agents } = await openPool();
    const ids = agents.map((agent) => agent.welcome!.agentId);
    const listIds = async () =>
      (await tunnel.stub.getPresence())!.agents.map(({ agentId }) => agentId);
    expect(await listIds()).toEqual(ids);
    agents[0].socket.close(1000);
    await vi.waitFor(async () => expect(await listIds()).toEqual([ids[1]]), WAIT_OPTIONS);
  });
});

describe("an agent whose local server refuses connections", () => {
  test("gets no requests while another is healthy", async () => {
    const { tunnel, agents } = await openPool();
    setHealth(agents[0], false);
    await waitForHealth(tunnel, [false, true]);
    for (let visit = 0; visit < 3; visit++) {
      const response = tunnel.visit("/");
      agents[1].respond((await agents[1].nextRequest()).stream, 204);
      expect((await response).status).toBe(204);
    }
    setHealth(agents[0], true);
    await waitForHealth(tunnel, [true, true]);
    const response = tunnel.visit("/");
    agents[0].respond((await agents[0].nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });

  test("is known to be unhealthy from its hello, and after hibernation", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent({}, toHello({ healthy: false }));
    const healthy = await tunnel.agent({}, toHello());
    await tunnel.sleep();
    const response = tunnel.visit("/");
    healthy.respond((await healthy.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });

  test("is disconnected when it reports its health too often", async () => {
    const { agents } = await openPool();
    agents[0].send((writer) => {
      const count = STRAY_FRAMES_PER_SECOND_MAX / STATE_FRAME_COST + 1;
      for (let n = 0; n < count; n++) writer.writeJson(FRAME.health, 0, 0, { healthy: true });
    });
    expect((await agents[0].closed).code).toBe(CLOSE.overloaded);
  });

  test("gets requests when no other is healthy, and the visitor its error", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({}, toHello({ healthy: false }));
    await tunnel.agent({}, toHello({ healthy: false }));
    const response = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.send((w) => w.writeCodeAndText(FRAME.reset, stream, RESET.originUnreachable, ""));
    expect((await response).status).toBe(502);
  });

  test("has passed nothing on, so another one gets the request, POST included", async () => {
    const { tunnel, agents } = await openPool();
    const response = tunnel.visit("/", { method: "POST" });
    const { stream } = await agents[0].nextRequest();
    agents[0].send((w) => w.writeCodeAndText(FRAME.reset, stream, RESET.originUnreachable, ""));
    const received = await agents[1].nextRequest();
    expect(received.method).toBe("POST");
    agents[1].respond(received.stream, 201, [], "once");
    expect((await response).status).toBe(201);
  });

  test("may have received the body, so such a request is not sent again", async () => {
    const { tunnel, agents } = await openPool();
    const response = tunnel.visit("/", { method: "POST", body: "an order" });
    const { stream } = await agents[0].nextRequest();
    expect((await agents[0].nextData()).text).toBe("an order");
    agents[0].send((w) => w.writeCodeAndText(FRAME.reset, stream, RESET.originUnreachable, ""));
    expect((await response).status).toBe(502);
    expect(agents[1].pendingFrames).toBe(0);
  });

  test("answers a request that all others have refused, with an error", async () => {
    const { tunnel, agents } = await openPool();
    const response = tunnel.visit("/");
    for (const agent of agents) {
      const { stream } = await agent.nextRequest();
      agent.send((w) => w.writeCodeAndText(FRAME.reset, stream, RESET.originUnreachable, ""));
    }
    expect((await response).status).toBe(502);
  });
});

describe("an agent that is lost", () => {
  test("leaves its idempotent requests to another one, at once", async () => {
    const { tunnel, agents } = await openPool();
    const response = tunnel.visit("/");
    await agents[0].nextRequest();
    agents[0].socket.close(1011, "lost");
    agents[1].respond((await agents[1].nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });

  test("may have passed a POST on, so it is not sent again", async () => {
    const { tunnel, agents } = await openPool();
    const response = tunnel.visit("/", { method: "POST" });
    await agents[0].nextRequest();
    agents[0].socket.close(1011, "lost");
    expect((await response).status).toBe(502);
    expect(agents[1].pendingFrames).toBe(0);
  });

  test("takes no visitor's WebSocket of another one with it, also after hibernation", async () => {
    const { tunnel, agents } = await openPool();
    const { socket, stream } = await tunnel.visitorSocket(agents[0]);
    agents[1].socket.close(1011, "lost");
    await agents[1].closed;
    await tunnel.sleep();
    agents[0].send((writer) => writer.writeText(FRAME.text, 0, stream, "still here"));
    expect(await socket.nextMessage()).toBe("still here");
  });

  test("ends maintenance only when it was the last one", async () => {
    const { tunnel, agents } = await openPool();
    await setMaintenance(tunnel, true);
    agents[0].socket.close(1000);
    await agents[0].closed;
    await vi.waitFor(
      async () => expect(await tunnel.stub.listAgents()).toHaveLength(1),
      WAIT_OPTIONS,
    );
    expect((await tunnel.visit("/")).status).toBe(503);
    agents[1].socket.close(1011, "lost");
    await agents[1].closed;
    const back = await tunnel.agent({}, toHello());
    const response = tunnel.visit("/");
    back.respond((await back.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });
});

test("an agent that misses a heartbeat is passed over before it is given up", async () => {
  const { tunnel, agents } = await openPool();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HEARTBEAT_LATE_MS + 1_000 });
  for (const isHealthy of [false, true]) {
    setHealth(agents[1], isHealthy);
    await waitForHealth(tunnel, [true, isHealthy]);
  }
  for (let visit = 0; visit < 2; visit++) {
    const response = tunnel.visit("/");
    agents[1].respond((await agents[1].nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  }
});

test("an agent that goes away gets no further request, and is told so", async () => {
  const tunnel = new LiveTunnel();
  const hello = { ...toHello(), capabilities: [STATUS_CAPABILITY] };
  const leaving = await tunnel.agent({}, hello);
  await leaving.next(FRAME.status);
  const staying = await tunnel.agent({}, toHello());
  await leaving.next(FRAME.status);
  const slow = tunnel.visit("/slow");
  const { stream } = await leaving.nextRequest();
  leaving.send((writer) => writer.writeText(FRAME.goingAway, 0, 0, "stopped"));
  expect(parseJsonPayload((await leaving.next(FRAME.status)).payload)).toEqual({ drained: true });
  for (let visit = 0; visit < 2; visit++) {
    const response = tunnel.visit("/");
    staying.respond((await staying.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  }
  leaving.respond(stream, 200, [], "finished");
  expect(await (await slow).text()).toBe("finished");
  expect(leaving.pendingFrames).toBe(0);
});

test("a health frame of an agent that serves alone, or one that is unreadable, is a violation", async () => {
  const alone = await new LiveTunnel().agent();
  setHealth(alone, false);
  expect((await alone.closed).code).toBe(CLOSE.protocol_error);
  const pooled = await new LiveTunnel().agent({}, toHello());
  pooled.send((writer) => writer.writeText(FRAME.health, FLAG.end, 0, "{"));
  expect((await pooled.closed).code).toBe(CLOSE.protocol_error);
});

test("a TCP tunnel has one agent, whatever it asks for", async () => {
  const tunnel = new LiveTunnel();
  const relay = { relay: { id: "eu", port: 20_000 } };
  const first = await tunnel.agent(relay, toHello());
  await tunnel.agent(relay, toHello());
  expect((await first.closed).code).toBe(CLOSE.replaced);
});

test("over several objects, each agent serves at all of them, and is ended at all of them", async () => {
  const tunnel = new ShardedTunnel(2);
  await tunnel.setCount(2);
  const hellos = [toHello(), toHello()];
  const connections: TestAgent[][] = [];
  for (const hello of hellos) {
    connections.push([
      await tunnel.objects[0]!.agent({}, hello),
      await tunnel.objects[1]!.agent({}, hello),
    ]);
  }
  const [one, other] = connections as [TestAgent[], TestAgent[]];
  const visits = [tunnel.objects[0]!.visit("/"), tunnel.objects[1]!.visit("/")];
  const streams = [await one[0]!.nextRequest(), await one[1]!.nextRequest()];
  const [state] = await tunnel.first.stub.listAgents();
  expect(state).toMatchObject({ inFlight: 2, isHealthy: true });
  for (const [at, { stream }] of streams.entries()) one[at]!.respond(stream, 204);
  for (const visit of visits) expect((await visit).status).toBe(204);

  await tunnel.first.stub.disconnectAgent(one[0]!.welcome!.agentId);
  for (const ended of one) expect((await ended.closed).code).toBe(CLOSE.connection_ended);
  for (const [at, object] of tunnel.objects.entries()) {
    const response = object.visit("/");
    other[at]!.respond((await other[at]!.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  }
});
