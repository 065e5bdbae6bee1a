import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import { FLAG, FRAME, RESET } from "../../../../protocol/wire/frames.ts";
import { lastCapture, setCaptureSettings } from "../../../harness/workerd/live-captures.ts";
import { LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";
import { rows } from "../../../harness/workerd/objects.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { MINUTE_MS } from "../../../../shared/time.ts";

async function visit(tunnel: LiveTunnel, agent: TestAgent, status = 200, body = "12345") {
  const answer = tunnel.visit("/");
  agent.respond((await agent.nextRequest()).stream, status, [], body);
  await (await answer).text();
}
const getReport = async (tunnel: LiveTunnel) => (await tunnel.stub.sendReport())!;
const sumCounters = (counters: Record<string, number>, family: string) =>
  Object.entries(counters)
    .filter(([name]) => name.startsWith(`${family}:`) && name !== "latency:sum")
    .reduce((sum, [, count]) => sum + count, 0);

describe("a tunnel counts", () => {
  test("each response by its class and latency", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    for (const status of [200, 201, 302, 404, 500]) await visit(tunnel, agent, status);
    await tunnel.visitorSocket(agent);
    const { counters, traffic } = await getReport(tunnel);
    expect(counters).toMatchObject({
      "requests:1xx": 1,
      "requests:2xx": 2,
      "requests:3xx": 1,
      "requests:4xx": 1,
      "requests:5xx": 1,
    });
    expect(sumCounters(counters, "latency")).toBe(6);
    expect(traffic.map(({ requests, bytesOut }) => [requests, bytesOut])).toEqual([
      [6, 25],
      [6, 25],
    ]);
  });

  test("refusals by their reason, without a latency, also before any agent has connected", async () => {
    const tunnel = new LiveTunnel();
    expect((await tunnel.visit("/")).status).toBe(502);
    await runDurableObjectAlarm(tunnel.stub);
    await tunnel.sleep();
    await tunnel.agent();
    await tunnel.stub.setMaintenance(tunnel.id, { version: 1, isOn: true, message: null });
    expect((await tunnel.visit("/")).status).toBe(503);
    const { counters, requests } = await getReport(tunnel);
    expect(counters).toEqual({
      "requests:5xx": 2,
      "refusals:agent_offline": 1,
      "refusals:maintenance": 1,
    });
    expect(requests).toBe(1);
  });

  test("failures of the local server by their reason", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    const { stream } = await agent.nextRequest();
    agent.send((writer) =>
      writer.writeCodeAndText(FRAME.reset, stream, RESET.originTimeout, "slow"),
    );
    expect((await answer).status).toBe(504);
    const { counters } = await getReport(tunnel);
    expect(counters).toEqual({ "requests:5xx": 1, "refusals:origin_timeout": 1 });
  });

  test("a local server's response with a refusal's header as a response", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    agent.respond((await agent.nextRequest()).stream, 503, ["underpass-error", "maintenance"], "");
    await answer;
    const { counters } = await getReport(tunnel);
    expect(sumCounters(counters, "refusals")).toBe(0);
    expect(counters).toMatchObject({ "requests:5xx": 1 });
  });

  test("visitors who disconnect before a response separately from failures", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const abort = new AbortController();
    const answer = tunnel.visit("/", { signal: abort.signal }).catch(() => undefined);
    const { stream } = await agent.nextRequest();
    abort.abort();
    await answer;
    expect((await agent.nextCode(FRAME.reset)).stream).toBe(stream);
    const { counters } = await vi.waitUntil(async () => {
      const report = await getReport(tunnel);
      return sumCounters(report.counters, "requests") > 0 && report;
    }, WAIT_OPTIONS);
    expect(counters).toEqual({ "requests:left": 1 });
  });

  test("a replay as a request", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await setCaptureSettings(tunnel, { allowReplay: true });
    await visit(tunnel, agent);
    const { id } = await lastCapture(tunnel);
    const replayed = tunnel.stub.replay(id);
    agent.respond((await agent.nextRequest()).stream, 404, [], "gone");
    await replayed;
    const { counters, requests, bytesOut } = await getReport(tunnel);
    expect(counters).toMatchObject({ "requests:2xx": 1, "requests:4xx": 1 });
    expect([requests, bytesOut]).toEqual([2, 9]);
  });

  test("nothing for a host that it does not serve: the request goes to another tunnel", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    await tunnel.stub.retire();
    expect((await tunnel.visit("/")).status).toBe(404);
    expect((await getReport(tunnel)).counters).toEqual({});
  });
});

describe("a tunnel's counters", () => {
  test("continue after hibernation, in the same minute and the next ones", async () => {
    const tunnel = new LiveTunnel();
    const noon = Math.ceil(Date.now() / 3600_000) * 3600_000;
    vi.useFakeTimers({ toFake: ["Date"], now: noon });
    try {
      const agent = await tunnel.agent({ tokenExpiresAtMs: noon + 3600_000 });
      await visit(tunnel, agent);
      await runDurableObjectAlarm(tunnel.stub);
      await tunnel.sleep();
      await visit(tunnel, agent);
      await runDurableObjectAlarm(tunnel.stub);
      vi.setSystemTime(noon + MINUTE_MS);
      const again = await tunnel.agent({ tokenExpiresAtMs: noon + 3600_000 });
      await visit(tunnel, again);
      const { traffic } = await getReport(tunnel);
      const counted = traffic.map(({ grain, startsAtMs, requests, bytesOut }) => [
        grain,
        startsAtMs - noon,
        requests,
        bytesOut,
      ]);
      expect(counted).toEqual([
        ["hour", 0, 3, 15],
        ["minute", MINUTE_MS, 1, 5],
      ]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("are reported within five seconds of a request", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const lastReport = () => rows.reports.findLast(({ tunnelId }) => tunnelId === tunnel.id);
    await vi.waitUntil(() => lastReport()?.agentConnected, WAIT_OPTIONS);
    await visit(tunnel, agent);
    const requestedAtMs = Date.now();
    const readAlarm = () => runInDurableObject(tunnel.stub, (_, { storage }) => storage.getAlarm());
    const alarmAtMs = await vi.waitUntil(readAlarm, WAIT_OPTIONS);
    expect(alarmAtMs).toBeLessThanOrEqual(requestedAtMs + 5_000);
    while (lastReport()?.requests !== 1) await runDurableObjectAlarm(tunnel.stub);
    expect(lastReport()).toMatchObject({ requests: 1, bytesOut: 5 });
  });

  test("are reported once, however often a report is requested", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await visit(tunnel, agent);
    expect((await getReport(tunnel)).traffic).not.toEqual([]);
    expect((await getReport(tunnel)).traffic).toEqual([]);
  });

  test("have the bytes of a long response in the minutes in which they were sent", async () => {
    const tunnel = new LiveTunnel();
    const noon = Math.ceil(Date.now() / 3600_000) * 3600_000;
    vi.useFakeTimers({ toFake: ["Date"], now: noon });
    try {
      const agent = await tunnel.agent({ tokenExpiresAtMs: noon + 3600_000 });
      const answer = tunnel.visit("/");
      const { stream } = await agent.nextRequest();
      agent.respond(stream, 200);
      const reader = (await answer).body!.getReader();
      agent.send((writer) => writer.writeText(FRAME.data, 0, stream, "first"));
      await reader.read();
      vi.setSystemTime(noon + MINUTE_MS);
      agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, "second!"));
      await reader.read();
      const { traffic } = await getReport(tunnel);
      const minutes = traffic.filter(({ grain }) => grain === "minute");
      expect(minutes.map(({ requests, bytesOut }) => [requests, bytesOut])).toEqual([
        [1, 5],
        [0, 7],
      ]);
    } finally {
      vi.useRealTimers();
    }
  });
});
