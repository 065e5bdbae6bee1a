import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import { FLAG, FRAME, PING, PONG } from "../../../../protocol/wire/frames.ts";
import { HEARTBEAT_TIMEOUT_MS } from "../../../../protocol/limits.ts";
import { ALARM_RETRY_MAX_MS } from "../../../../durable-objects/tunnel/alarm.ts";
import { AUTH_RATE_BURST, AUTH_RATE_REFILL_MS } from "../../../../durable-objects/rate-limiter.ts";
import { bindings, HELLO, LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

describe("a tunnel that slept", () => {
  test("is served by the same agent", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await tunnel.sleep();
    const answer = tunnel.visit("/");
    agent.answer((await agent.asked()).stream, 200, [], "awake");
    expect(await (await answer).text()).toBe("awake");
  });

  test("still knows which credential serves it", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await tunnel.sleep();
    const other = await tunnel.connection({ tokenNonce: "token-b" });
    other.send((writer) => writer.writeJson(FRAME.hello, 0, 0, HELLO));
    expect((await other.closed).code).toBe(CLOSE.duplicate_name);
    await tunnel.agent();
    expect((await agent.closed).code).toBe(CLOSE.replaced);
  });

  test("carries its visitors' WebSockets on, in both directions and to their end", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const first = await tunnel.visitorSocket(agent);
    const second = await tunnel.visitorSocket(agent);
    await tunnel.sleep();
    first.socket.socket.send("up");
    expect(await agent.next(FRAME.text)).toMatchObject({ stream: first.stream });
    agent.send((writer) => writer.writeText(FRAME.text, 0, second.stream, "down"));
    expect(await second.socket.message()).toBe("down");
    await agent.next(FRAME.credit);
    await tunnel.sleep();
    first.socket.socket.close(4001, "bye");
    expect(await agent.coded(FRAME.close)).toEqual({
      stream: first.stream,
      code: 4001,
      text: "bye",
    });
    agent.send((writer) => writer.writeCodeAndText(FRAME.close, second.stream, 4002, "bye"));
    expect(await second.socket.closed).toEqual({ code: 4002, reason: "bye" });
  });

  test("closes its visitors' WebSockets when it wakes without their agent", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const { socket } = await tunnel.visitorSocket(agent);
    await tunnel.sleep();
    await tunnel.agent();
    expect((await socket.closed).code).toBe(1012);
  });

  test("answers heartbeats without waking up", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await tunnel.sleep();
    agent.socket.send(PING);
    expect(await agent.message()).toBe(PONG);
  });

  test("goes on counting where it was", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const visit = async () => {
      const answer = tunnel.visit("/", { method: "POST", body: "12345" });
      const { stream } = await agent.asked();
      while (!(await agent.data()).isLast);
      agent.answer(stream, 200, [], "123");
      await (await answer).text();
    };
    await visit();
    await runDurableObjectAlarm(tunnel.stub);
    await tunnel.sleep();
    await visit();
    const report = await tunnel.stub.sendReport();
    expect(report).toMatchObject({ requests: 2, bytesIn: 10, bytesOut: 6, agentConnected: true });
  });

  test("refuses frames of streams that it no longer knows as late, not as wrong", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await tunnel.sleep();
    agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, 12, "from before"));
    const answer = tunnel.visit("/");
    agent.answer((await agent.asked()).stream, 204);
    expect((await answer).status).toBe(204);
  });
});

describe("an agent that fell silent", () => {
  test("is let go by the next visit, and the visitor waits for its return", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HEARTBEAT_TIMEOUT_MS + 1 });
    const answer = tunnel.visit("/");
    expect((await agent.closed).code).toBe(CLOSE.heartbeat_timeout);
    const next = await tunnel.agent();
    next.answer((await next.asked()).stream, 204);
    expect((await answer).status).toBe(204);
  });

  test("does not keep another credential out", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HEARTBEAT_TIMEOUT_MS + 1 });
    expect((await tunnel.agent({ tokenNonce: "token-b" })).welcome).toBeDefined();
  });

  test("does not keep what is streaming through it", async () => {
    const tunnel = new LiveTunnel();
    vi.useFakeTimers({ toFake: ["Date", "setInterval", "clearInterval"] });
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    const { stream } = await agent.asked();
    agent.answer(stream, 200, ["content-length", "100"]);
    const { body } = await answer;
    await runInDurableObject(tunnel.stub, () => {
      vi.advanceTimersByTime(HEARTBEAT_TIMEOUT_MS + 2_000);
    });
    expect((await agent.closed).code).toBe(CLOSE.heartbeat_timeout);
    await expect(new Response(body).text()).rejects.toThrow();
  });

  test("does not keep a visitor's WebSocket that says something", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const { socket } = await tunnel.visitorSocket(agent);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HEARTBEAT_TIMEOUT_MS + 1 });
    socket.socket.send("anybody there?");
    await runDurableObjectAlarm(tunnel.stub);
    expect((await socket.closed).code).toBe(1012);
  });
});

describe("the tunnel's row is told", () => {
  const reportsOf = (tunnel: LiveTunnel) =>
    rows.reports.filter(({ tunnelId }) => tunnelId === tunnel.id);

  test("when an agent comes and when it goes, with growing numbers", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await vi.waitUntil(() => reportsOf(tunnel).at(-1)?.agentConnected === true, WAIT_OPTIONS);
    agent.socket.close(1000);
    await vi.waitUntil(() => reportsOf(tunnel).at(-1)?.agentConnected === false, WAIT_OPTIONS);
    const { lastSeenAtMs } = reportsOf(tunnel).at(-1)!;
    expect(Math.abs(lastSeenAtMs! - Date.now())).toBeLessThan(60_000);
    await tunnel.sleep();
    await tunnel.stub.sendReport();
    const sequences = reportsOf(tunnel).map(({ sequence }) => sequence);
    expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
  });

  test("when an agent goes that nobody visited for long, and visitors wait for its return", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await vi.waitUntil(() => reportsOf(tunnel).at(-1)?.agentConnected === true, WAIT_OPTIONS);
    await tunnel.sleep();
    agent.socket.close(1011);
    await vi.waitUntil(() => reportsOf(tunnel).at(-1)?.agentConnected === false, WAIT_OPTIONS);
    const answer = tunnel.visit("/");
    const next = await tunnel.agent();
    next.answer((await next.asked()).stream, 204);
    expect((await answer).status).toBe(204);
  });

  test("soon again when it could not be, also where something is kept for days", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    agent.answer((await agent.asked()).stream, 200, [], "");
    await (await answer).text();
    expect(await tunnel.stub.listCaptures({ limit: 1 })).toHaveLength(1);
    rows.failing.add(tunnel.id);
    vi.spyOn(console, "error").mockReturnValue();
    await runDurableObjectAlarm(tunnel.stub);
    const retryAtMs = await runInDurableObject(tunnel.stub, (_, { storage }) => storage.getAlarm());
    expect(retryAtMs! - Date.now()).toBeLessThan(ALARM_RETRY_MAX_MS);
    rows.failing.delete(tunnel.id);
    await runDurableObjectAlarm(tunnel.stub);
    expect(reportsOf(tunnel).at(-1)).toMatchObject({ agentConnected: true, requests: 1 });
  });

  test("what is true, by whoever asks", async () => {
    const tunnel = new LiveTunnel();
    expect(await tunnel.stub.sendReport()).toBeNull();
    await tunnel.agent();
    expect(await tunnel.stub.sendReport()).toMatchObject({ agentConnected: true });
    expect(reportsOf(tunnel).at(-1)).toMatchObject({ agentConnected: true });
  });
});

describe("a host name", () => {
  const newHost = () => crypto.randomUUID().slice(0, 8);

  test("is read from its row once, and its route survives sleep", async () => {
    const host = newHost();
    rows.routes.set(host, { tunnelId: "tunnel-1", version: 1 });
    const stub = bindings.HOSTNAME.getByName(host);
    expect(await Promise.all([stub.resolve(), stub.resolve()])).toEqual(["tunnel-1", "tunnel-1"]);
    await evictDurableObject(stub);
    expect(await stub.resolve()).toBe("tunnel-1");
    expect(rows.asked.filter((asked) => asked === host)).toHaveLength(1);
  });

  test("follows what is published, and never goes back", async () => {
    const host = newHost();
    const stub = bindings.HOSTNAME.getByName(host);
    await stub.publish({ tunnelId: "tunnel-2", version: 2 });
    await stub.publish({ tunnelId: "tunnel-1", version: 1 });
    expect(await stub.resolve()).toBe("tunnel-2");
    await stub.publish({ tunnelId: null, version: 3 });
    expect(await stub.resolve()).toBeNull();
    expect(rows.asked).not.toContain(host);
  });

  test("that nobody has costs nothing to keep", async () => {
    const stub = bindings.HOSTNAME.getByName(newHost());
    expect(await stub.resolve()).toBeNull();
    await runInDurableObject(stub, async (_, { storage }) => {
      expect((await storage.list()).size).toBe(0);
    });
  });
});

describe("an address on the sign-in routes", () => {
  test("has a burst, then one request at a time, and sleep does not refill it", async () => {
    const stub = bindings.RATE_LIMITER.getByName(crypto.randomUUID());
    for (let i = 0; i < AUTH_RATE_BURST; i += 1) expect(await stub.take()).toBe(0);
    await evictDurableObject(stub);
    const waitMs = await stub.take();
    expect(waitMs).toBeGreaterThan(0);
    expect(waitMs).toBeLessThanOrEqual(AUTH_RATE_REFILL_MS);
  });

  test("that stays away leaves nothing behind", async () => {
    const stub = bindings.RATE_LIMITER.getByName(crypto.randomUUID());
    await stub.take();
    expect(await runDurableObjectAlarm(stub)).toBe(true);
    await runInDurableObject(stub, async (_, { storage }) => {
      expect((await storage.list()).size).toBe(0);
    });
  });
});
