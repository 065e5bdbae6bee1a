/** A tunnel that its owner stops and starts, and one whose time is over. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { CLOSE } from "../../../../protocol/wire/close-codes.ts";
import { ERROR_HEADER } from "../../../../protocol/errors.ts";
import { LiveTunnel, Refused } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";

afterEach(() => void vi.useRealTimers());

const STOP = { version: 1, isStopped: true };
const START = { version: 2, isStopped: false };

const codeOf = async (answer: Promise<Response>) => (await answer).headers.get(ERROR_HEADER);

describe("a stopped tunnel", () => {
  test("lets its agent go and says why, and takes no other", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await tunnel.stub.setStopState(STOP);
    expect(await agent.closed).toEqual({
      code: CLOSE.tunnel_stopped,
      reason: "tunnel_stopped: the tunnel was stopped",
    });
    await expect(tunnel.agent()).rejects.toThrow(Refused);
    await expect(tunnel.agent({ tokenNonce: "token-b" })).rejects.toThrow(Refused);
  });

  test("lets go of a connection too that has said nothing yet", async () => {
    const tunnel = new LiveTunnel();
    const connection = await tunnel.connection();
    await tunnel.stub.setStopState(STOP);
    expect((await connection.closed).code).toBe(CLOSE.tunnel_stopped);
  });

  test("is offline for its visitors at once: they wait for nobody", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const unanswered = tunnel.visit("/");
    await agent.asked();
    // By this clock whoever waits for an agent waits for ever.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    await tunnel.stub.setStopState(STOP);
    expect(await codeOf(unanswered)).toBe("agent_offline");
    const next = tunnel.visit("/");
    expect(await codeOf(next)).toBe("agent_offline");
    expect(await (await next).text()).toContain("has stopped it");
  });

  test("sends those home who wait for an agent that was lost", async () => {
    const tunnel = new LiveTunnel();
    (await tunnel.agent()).socket.close(1011);
    await vi.waitUntil(async () => !(await tunnel.stub.sendReport())?.agentConnected, WAIT_OPTIONS);
    const waiting = tunnel.visit("/");
    await tunnel.stub.setStopState(STOP);
    expect(await codeOf(waiting)).toBe("agent_offline");
  });

  test("is stopped after it slept, and serves again once it is started", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.stub.setStopState(STOP);
    await tunnel.sleep();
    await expect(tunnel.agent()).rejects.toThrow(Refused);
    await tunnel.stub.setStopState(START);
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    agent.answer((await agent.asked()).stream, 204);
    expect((await answer).status).toBe(204);
  });

  test("is what the later change says, in whatever order the changes arrive", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.stub.setStopState(START);
    await tunnel.stub.setStopState(STOP);
    const agent = await tunnel.agent();
    await tunnel.stub.setStopState({ version: 3, isStopped: true });
    expect((await agent.closed).code).toBe(CLOSE.tunnel_stopped);
  });
});

describe("a tunnel whose time is over", () => {
  const alarmOf = (tunnel: LiveTunnel) =>
    runInDurableObject(tunnel.stub, (_, { storage }) => storage.getAlarm());

  test("ends by its own alarm: its agent is told, its visitors find nothing", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({ endsAtMs: Date.now() - 1 });
    await runDurableObjectAlarm(tunnel.stub);
    expect(await agent.closed).toEqual({
      code: CLOSE.tunnel_expired,
      reason: "tunnel_expired: the tunnel's time is over",
    });
    expect(await codeOf(tunnel.visit("/"))).toBe("tunnel_not_found");
    await expect(tunnel.agent()).rejects.toThrow(Refused);
  });

  test("is awaited by the alarm from the agent's arrival on, after a report and sleep too", async () => {
    const tunnel = new LiveTunnel();
    const endsAtMs = Date.now() + 600_000;
    const agent = await tunnel.agent({ endsAtMs });
    await vi.waitUntil(async () => (await alarmOf(tunnel)) === endsAtMs, WAIT_OPTIONS);
    const answer = tunnel.visit("/");
    agent.answer((await agent.asked()).stream, 200, [], "seen");
    await (await answer).text();
    await vi.waitUntil(async () => (await alarmOf(tunnel))! < endsAtMs, WAIT_OPTIONS);
    await runDurableObjectAlarm(tunnel.stub);
    await tunnel.sleep();
    expect(await alarmOf(tunnel)).toBe(endsAtMs);
  });

  test("is awaited where no agent ever came", async () => {
    const tunnel = new LiveTunnel();
    const endsAtMs = Date.now() + 600_000;
    await tunnel.stub.scheduleExpiry(tunnel.id, endsAtMs);
    expect(await alarmOf(tunnel)).toBe(endsAtMs);
  });

  test("ends at the nearest of the ends that it was told", async () => {
    const tunnel = new LiveTunnel();
    const endsAtMs = Date.now() + 600_000;
    await tunnel.stub.scheduleExpiry(tunnel.id, endsAtMs);
    await tunnel.stub.scheduleExpiry(tunnel.id, endsAtMs + 1_000);
    expect(await alarmOf(tunnel)).toBe(endsAtMs);
  });

  test("goes on while the rows' clock says that it is not: they are asked again then", async () => {
    const tunnel = new LiveTunnel();
    rows.left.set(tunnel.id, 60_000);
    const agent = await tunnel.agent({ endsAtMs: Date.now() - 1 });
    const askedAtMs = Date.now();
    await vi.waitUntil(async () => (await alarmOf(tunnel))! >= askedAtMs + 59_000, WAIT_OPTIONS);
    const answer = tunnel.visit("/");
    agent.answer((await agent.asked()).stream, 204);
    expect((await answer).status).toBe(204);
    rows.left.delete(tunnel.id);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
    await runDurableObjectAlarm(tunnel.stub);
    expect((await agent.closed).code).toBe(CLOSE.tunnel_expired);
    expect(await codeOf(tunnel.visit("/"))).toBe("tunnel_not_found");
  });
});
