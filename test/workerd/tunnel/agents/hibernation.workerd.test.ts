import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import { CLOSE_CAPABILITY, FLAG, FRAME, PING, PONG } from "../../../../protocol/wire/frames.ts";
import { HEARTBEAT_TIMEOUT_MS } from "../../../../protocol/limits.ts";
import { ALARM_RETRY_MAX_MS } from "../../../../durable-objects/tunnel/alarm.ts";
import { HELLO, LiveTunnel } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

describe("a tunnel that hibernated", () => {
  test("is served by the same agent", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await tunnel.sleep();
    const response = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 200, [], "awake");
    expect(await (await response).text()).toBe("awake");
  });

  test("remembers which credential serves it", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await tunnel.sleep();
    const other = await tunnel.connect({ tokenNonce: "token-b" });
    other.send((writer) => writer.writeJson(FRAME.hello, 0, 0, HELLO));
    expect((await other.closed).code).toBe(CLOSE.duplicate_name);
    await tunnel.agent();
    expect((await agent.closed).code).toBe(CLOSE.replaced);
  });

  test("continues its visitors' WebSockets, in both directions and to their end", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const first = await tunnel.visitorSocket(agent);
    const second = await tunnel.visitorSocket(agent);
    await tunnel.sleep();
    first.socket.socket.send("up");
    expect(await agent.next(FRAME.text)).toMatchObject({ stream: first.stream });
    agent.send((writer) => writer.writeText(FRAME.text, 0, second.stream, "down"));
    expect(await second.socket.nextMessage()).toBe("down");
    await agent.next(FRAME.credit);
    await tunnel.sleep();
    first.socket.socket.close(4001, "bye");
    expect(await agent.nextCode(FRAME.close)).toEqual({
      stream: first.stream,
      code: 4001,
      text: "bye",
    });
    agent.send((writer) => writer.writeCodeAndText(FRAME.close, second.stream, 4002, "bye"));
    expect(await second.socket.closed).toEqual({ code: 4002, reason: "bye" });
  });

  test("wakes up for a visitor's Close, which the local server answers after its last messages", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({}, { ...HELLO, capabilities: [CLOSE_CAPABILITY] });
    const { socket, stream } = await tunnel.visitorSocket(agent);
    await tunnel.sleep();
    socket.socket.close(4001, "bye");
    expect(await agent.nextCode(FRAME.close)).toEqual({ stream, code: 4001, text: "bye" });
    agent.send((writer) => {
      writer.writeText(FRAME.text, 0, stream, "last words");
      writer.writeCodeAndText(FRAME.close, stream, 4002, "later");
    });
    expect(await socket.nextMessage()).toBe("last words");
    expect(await socket.closed).toEqual({ code: 4002, reason: "later" });
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
    expect(await agent.nextMessage()).toBe(PONG);
  });

  test("continues its counts", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const visit = async () => {
      const response = tunnel.visit("/", { method: "POST", body: "12345" });
      const { stream } = await agent.nextRequest();
      while (!(await agent.nextData()).isLast);
      agent.respond(stream, 200, [], "123");
      await (await response).text();
    };
    await visit();
    await runDurableObjectAlarm(tunnel.stub);
    await tunnel.sleep();
    await visit();
    const report = await tunnel.stub.sendReport();
    expect(report).toMatchObject({ requests: 2, bytesIn: 10, bytesOut: 6, agentConnected: true });
  });

  test("ignores late frames of streams that have ended", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await tunnel.sleep();
    agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, 12, "from before"));
    const response = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });
});

describe("an agent that is silent", () => {
  test("is disconnected by the next request, which waits for it to reconnect", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HEARTBEAT_TIMEOUT_MS + 1 });
    const response = tunnel.visit("/");
    expect((await agent.closed).code).toBe(CLOSE.heartbeat_timeout);
    const next = await tunnel.agent();
    next.respond((await next.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });

  test("does not block another credential", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HEARTBEAT_TIMEOUT_MS + 1 });
    const other = await tunnel.agent({ tokenNonce: "token-b" });
    expect(other.welcome?.tunnelId).toBe(tunnel.id);
  });

  test("does not leave responses open that stream through it", async () => {
    const tunnel = new LiveTunnel();
    vi.useFakeTimers({ toFake: ["Date", "setInterval", "clearInterval"] });
    const agent = await tunnel.agent();
    const response = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.respond(stream, 200, ["content-length", "100"]);
    const { body } = await response;
    await runInDurableObject(tunnel.stub, () => {
      vi.advanceTimersByTime(HEARTBEAT_TIMEOUT_MS + 2_000);
    });
    expect((await agent.closed).code).toBe(CLOSE.heartbeat_timeout);
    await expect(new Response(body).text()).rejects.toThrow();
  });

  test("does not leave a visitor's WebSocket open that sends a message", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const { socket } = await tunnel.visitorSocket(agent);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HEARTBEAT_TIMEOUT_MS + 1 });
    socket.socket.send("hello?");
    await runDurableObjectAlarm(tunnel.stub);
    expect((await socket.closed).code).toBe(1012);
  });
});

describe("the tunnel's row is updated", () => {
  const findReports = (tunnel: LiveTunnel) =>
    rows.reports.filter(({ tunnelId }) => tunnelId === tunnel.id);

  test("when an agent connects and disconnects, with increasing sequence numbers", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await vi.waitUntil(() => findReports(tunnel).at(-1)?.agentConnected === true, WAIT_OPTIONS);
    agent.socket.close(1000);
    await vi.waitUntil(() => findReports(tunnel).at(-1)?.agentConnected === false, WAIT_OPTIONS);
    const { lastSeenAtMs } = findReports(tunnel).at(-1)!;
    expect(Math.abs(lastSeenAtMs! - Date.now())).toBeLessThan(60_000);
    await tunnel.sleep();
    await tunnel.stub.sendReport();
    const sequences = findReports(tunnel).map(({ sequence }) => sequence);
    expect(sequences).toEqual([...new Set(sequences)].sort((a, b) => a - b));
  });

  test("when an agent of an idle tunnel disconnects, and visitors wait for it to reconnect", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await vi.waitUntil(() => findReports(tunnel).at(-1)?.agentConnected === true, WAIT_OPTIONS);
    await tunnel.sleep();
    agent.socket.close(1011);
    await vi.waitUntil(() => findReports(tunnel).at(-1)?.agentConnected === false, WAIT_OPTIONS);
    const response = tunnel.visit("/");
    const next = await tunnel.agent();
    next.respond((await next.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });

  test("again soon after a failure, also when the next alarm is days away", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    // Before the visit, whose report a busy machine may send before the alarm is run here.
    rows.failingTunnels.add(tunnel.id);
    vi.spyOn(console, "error").mockReturnValue();
    const response = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 200, [], "");
    await (await response).text();
    expect(await tunnel.stub.listCaptures({ limit: 1 })).toHaveLength(1);
    await runDurableObjectAlarm(tunnel.stub);
    const retryAtMs = await runInDurableObject(tunnel.stub, (_, { storage }) => storage.getAlarm());
    expect(retryAtMs! - Date.now()).toBeLessThan(ALARM_RETRY_MAX_MS);
    rows.failingTunnels.delete(tunnel.id);
    await runDurableObjectAlarm(tunnel.stub);
    expect(findReports(tunnel).at(-1)).toMatchObject({ agentConnected: true, requests: 1 });
  });

  test("on request, with the current state", async () => {
    const tunnel = new LiveTunnel();
    expect(await tunnel.stub.sendReport()).toBeNull();
    await tunnel.agent();
    expect(await tunnel.stub.sendReport()).toMatchObject({ agentConnected: true });
    expect(findReports(tunnel).at(-1)).toMatchObject({ agentConnected: true });
  });
});
