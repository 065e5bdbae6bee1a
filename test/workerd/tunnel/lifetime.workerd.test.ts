/** Tunnels that their owner stops and starts, and tunnels that expire. */
import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { afterEach, describe, expect, test, vi } from "vitest";
import { getRefusalMessage } from "../../../access/refusal.ts";
import { RETIRED_STORAGE_MS } from "../../../durable-objects/limits.ts";
import { ALARM_RETRY_MIN_MS } from "../../../durable-objects/tunnel/alarm.ts";
import { CLOSE } from "../../../protocol/wire/close-codes.ts";
import { ERROR_HEADER } from "../../../protocol/errors.ts";
import { LEFT_MS, LiveTunnel, RefusedError } from "../../harness/workerd/live-tunnel.ts";
import { rows } from "../../harness/workerd/objects.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

const STOP = { version: 1, isStopped: true };
const START = { version: 2, isStopped: false };

const readErrorCode = async (response: Promise<Response>) =>
  (await response).headers.get(ERROR_HEADER);

describe("a stopped tunnel", () => {
  test("disconnects its agent with the reason, and accepts no other", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await tunnel.stub.setStopState(STOP);
    expect(await agent.closed).toEqual({
      code: CLOSE.tunnel_stopped,
      reason: "tunnel_stopped: the tunnel was stopped",
    });
    await expect(tunnel.agent()).rejects.toThrow(RefusedError);
    await expect(tunnel.agent({ tokenNonce: "token-b" })).rejects.toThrow(RefusedError);
  });

  test("also disconnects an agent before its hello", async () => {
    const tunnel = new LiveTunnel();
    const connection = await tunnel.connect();
    await tunnel.stub.setStopState(STOP);
    expect((await connection.closed).code).toBe(CLOSE.tunnel_stopped);
  });

  test("is offline for visitors at once: they do not wait for an agent", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const unanswered = tunnel.visit("/");
    await agent.nextRequest();
    // With this clock, a request that waits for an agent would wait forever.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    await tunnel.stub.setStopState(STOP);
    expect(await readErrorCode(unanswered)).toBe("agent_offline");
    const next = tunnel.visit("/");
    expect(await readErrorCode(next)).toBe("agent_offline");
    expect(getRefusalMessage(await next)).toMatch(
      /has stopped it, .* underpass tunnels start NAME$/,
    );
  });

  test("refuses requests that wait for a lost agent", async () => {
    const tunnel = new LiveTunnel();
    (await tunnel.agent()).socket.close(1011);
    await vi.waitUntil(async () => !(await tunnel.stub.sendReport())?.agentConnected, WAIT_OPTIONS);
    const waiting = tunnel.visit("/");
    await tunnel.stub.setStopState(STOP);
    expect(await readErrorCode(waiting)).toBe("agent_offline");
  });

  test("is still stopped after hibernation, and serves again after it was started", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.stub.setStopState(STOP);
    await tunnel.sleep();
    await expect(tunnel.agent()).rejects.toThrow(RefusedError);
    await tunnel.stub.setStopState(START);
    const agent = await tunnel.agent();
    const response = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
  });

  test("follows the later of two changes, in whatever order they arrive", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.stub.setStopState(START);
    await tunnel.stub.setStopState(STOP);
    const agent = await tunnel.agent();
    await tunnel.stub.setStopState({ version: 3, isStopped: true });
    expect((await agent.closed).code).toBe(CLOSE.tunnel_stopped);
  });
});

describe("a tunnel that expires", () => {
  const readAlarm = (tunnel: LiveTunnel) =>
    runInDurableObject(tunnel.stub, (_, { storage }) => storage.getAlarm());

  test("expires by its own alarm: its agent is disconnected, its visitors get 404", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent({ endsAtMs: Date.now() - 1 });
    await runDurableObjectAlarm(tunnel.stub);
    expect(await agent.closed).toEqual({
      code: CLOSE.tunnel_expired,
      reason: "tunnel_expired: the tunnel has expired",
    });
    expect(await readErrorCode(tunnel.visit("/"))).toBe("tunnel_not_found");
    await expect(tunnel.agent()).rejects.toThrow(RefusedError);
  });

  test("keeps its alarm after a report and after hibernation", async () => {
    const tunnel = new LiveTunnel();
    const endsAtMs = Date.now() + 600_000;
    const agent = await tunnel.agent({ endsAtMs });
    await vi.waitUntil(async () => (await readAlarm(tunnel)) === endsAtMs, WAIT_OPTIONS);
    const response = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 200, [], "seen");
    await (await response).text();
    await vi.waitUntil(async () => (await readAlarm(tunnel))! < endsAtMs, WAIT_OPTIONS);
    await tunnel.stub.sendReport();
    await runDurableObjectAlarm(tunnel.stub);
    await tunnel.sleep();
    expect(await readAlarm(tunnel)).toBe(endsAtMs);
  });

  test("expires also if no agent ever connected", async () => {
    const tunnel = new LiveTunnel();
    const endsAtMs = Date.now() + 600_000;
    await tunnel.stub.scheduleExpiry(tunnel.id, endsAtMs);
    expect(await readAlarm(tunnel)).toBe(endsAtMs);
  });

  test("expires at the earliest of the scheduled times", async () => {
    const tunnel = new LiveTunnel();
    const endsAtMs = Date.now() + 600_000;
    await tunnel.stub.scheduleExpiry(tunnel.id, endsAtMs);
    await tunnel.stub.scheduleExpiry(tunnel.id, endsAtMs + 1_000);
    expect(await readAlarm(tunnel)).toBe(endsAtMs);
  });

  test("is tried again with an increasing wait while the database is unavailable", async () => {
    const tunnel = new LiveTunnel();
    rows.failingTunnels.add(tunnel.id);
    vi.spyOn(console, "error").mockReturnValue();
    await tunnel.stub.scheduleExpiry(tunnel.id, Date.now() - 1);
    await vi.waitUntil(async () => {
      await runDurableObjectAlarm(tunnel.stub);
      return (await readAlarm(tunnel))! >= Date.now() + 2 * ALARM_RETRY_MIN_MS - 1_000;
    }, WAIT_OPTIONS);
    rows.failingTunnels.delete(tunnel.id);
    await runDurableObjectAlarm(tunnel.stub);
    expect(await readErrorCode(tunnel.visit("/"))).toBe("tunnel_not_found");
  });

  test("continues until it has expired by the database's clock, which is asked again then", async () => {
    const tunnel = new LiveTunnel();
    const startedAtMs = Date.now();
    rows.remainingMs.set(tunnel.id, LEFT_MS);
    const agent = await tunnel.agent({ endsAtMs: startedAtMs - 1 });
    const isAskedLater = async () => (await readAlarm(tunnel))! >= startedAtMs + LEFT_MS;
    await vi.waitUntil(isAskedLater, WAIT_OPTIONS);
    const response = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 204);
    expect((await response).status).toBe(204);
    rows.remainingMs.delete(tunnel.id);
    await tunnel.runAlarmAt(Date.now() + LEFT_MS);
    expect((await agent.closed).code).toBe(CLOSE.tunnel_expired);
    expect(await readErrorCode(tunnel.visit("/"))).toBe("tunnel_not_found");
  });
});

describe("a tunnel that has ended", () => {
  const listKeys = (tunnel: LiveTunnel) =>
    runInDurableObject(tunnel.stub, (_, { storage }) => [...storage.kv.list()].map(([key]) => key));

  test("is refused for an hour by a mark, and then leaves nothing in storage", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const response = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 204);
    await response;
    await tunnel.stub.retire();
    await agent.closed;
    await tunnel.sleep();
    const retiredAtMs = Date.now();
    await tunnel.runAlarmAt(retiredAtMs + RETIRED_STORAGE_MS - 60_000);
    expect(await listKeys(tunnel)).toContain("retired");
    await tunnel.runAlarmAt(retiredAtMs + RETIRED_STORAGE_MS + 60_000);
    expect(await listKeys(tunnel)).toEqual([]);
    expect((await tunnel.visit("/")).status).toBe(404);
    await expect(tunnel.connect()).rejects.toThrow(RefusedError);
    await tunnel.stub.setWatchStatus({ version: 1, isWatched: true });
    expect(await listKeys(tunnel)).toEqual([]);
    const alarm = await runInDurableObject(tunnel.stub, (_, { storage }) => storage.getAlarm());
    expect(alarm).toBeNull();
  });

  test("refuses visitors at once, although its agent was lost a moment ago", async () => {
    const tunnel = new LiveTunnel();
    (await tunnel.agent()).socket.close(1011);
    await vi.waitUntil(async () => !(await tunnel.stub.sendReport())?.agentConnected, WAIT_OPTIONS);
    await tunnel.stub.retire();
    // With this clock, a request that waits for an agent would wait forever.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    expect(await readErrorCode(tunnel.visit("/"))).toBe("tunnel_not_found");
  });

  test("is stored until its last report has arrived", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    await tunnel.stub.retire();
    rows.failingTunnels.add(tunnel.id);
    await tunnel.runAlarmAt(Date.now() + 2 * RETIRED_STORAGE_MS);
    expect(await listKeys(tunnel)).toContain("retired");
    rows.failingTunnels.delete(tunnel.id);
    await tunnel.runAlarmAt(Date.now() + 60_000);
    expect(await listKeys(tunnel)).toEqual([]);
  });
});
