import { runDurableObjectAlarm } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import { FLAG, FRAME, RESET } from "../../../../protocol/wire/frames.ts";
import { lastCapture, setCapturing } from "../../../harness/workerd/live-captures.ts";
import { LiveTunnel, type TestAgent } from "../../../harness/workerd/live-tunnel.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { MINUTE_MS } from "../../../../shared/time.ts";

async function visit(tunnel: LiveTunnel, agent: TestAgent, status = 200, body = "12345") {
  const answer = tunnel.visit("/");
  agent.answer((await agent.asked()).stream, status, [], body);
  await (await answer).text();
}
const reportOf = async (tunnel: LiveTunnel) => (await tunnel.stub.sendReport())!;
const sumOf = (counters: Record<string, number>, family: string) =>
  Object.entries(counters)
    .filter(([name]) => name.startsWith(`${family}:`) && name !== "latency:sum")
    .reduce((sum, [, count]) => sum + count, 0);

describe("a tunnel counts", () => {
  test("each answer by its class, with the time that it took", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    for (const status of [200, 201, 302, 404, 500]) await visit(tunnel, agent, status);
    await tunnel.visitorSocket(agent);
    const { counters, traffic } = await reportOf(tunnel);
    expect(counters).toMatchObject({
      "requests:1xx": 1,
      "requests:2xx": 2,
      "requests:3xx": 1,
      "requests:4xx": 1,
      "requests:5xx": 1,
    });
    expect(sumOf(counters, "latency")).toBe(6);
    expect(traffic.map(({ requests, bytesOut }) => [requests, bytesOut])).toEqual([
      [6, 25],
      [6, 25],
    ]);
  });

  test("refusals by their reason, without a time, also before any agent came", async () => {
    const tunnel = new LiveTunnel();
    expect((await tunnel.visit("/")).status).toBe(502);
    await runDurableObjectAlarm(tunnel.stub);
    await tunnel.sleep();
    await tunnel.agent();
    await tunnel.stub.setMaintenance(tunnel.id, { version: 1, isOn: true, message: null });
    expect((await tunnel.visit("/")).status).toBe(503);
    const { counters, requests } = await reportOf(tunnel);
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
    const { stream } = await agent.asked();
    agent.send((writer) =>
      writer.writeCodeAndText(FRAME.reset, stream, RESET.originTimeout, "slow"),
    );
    expect((await answer).status).toBe(504);
    const { counters } = await reportOf(tunnel);
    expect(counters).toEqual({ "requests:5xx": 1, "refusals:origin_timeout": 1 });
  });

  test("a local server's own line that looks like a refusal as the answer that it is", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const answer = tunnel.visit("/");
    agent.answer((await agent.asked()).stream, 503, ["underpass-error", "maintenance"], "");
    await answer;
    const { counters } = await reportOf(tunnel);
    expect(sumOf(counters, "refusals")).toBe(0);
    expect(counters).toMatchObject({ "requests:5xx": 1 });
  });

  test("visitors who left before an answer apart from failures", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    const abort = new AbortController();
    const answer = tunnel.visit("/", { signal: abort.signal }).catch(() => undefined);
    const { stream } = await agent.asked();
    abort.abort();
    await answer;
    expect((await agent.coded(FRAME.reset)).stream).toBe(stream);
    const { counters } = await vi.waitUntil(async () => {
      const report = await reportOf(tunnel);
      return sumOf(report.counters, "requests") > 0 && report;
    }, WAIT_OPTIONS);
    expect(counters).toEqual({ "requests:left": 1 });
  });

  test("a replay as the request that it is", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await setCapturing(tunnel, { allowReplay: true });
    await visit(tunnel, agent);
    const { id } = await lastCapture(tunnel);
    const replayed = tunnel.stub.replay(id);
    agent.answer((await agent.asked()).stream, 404, [], "gone");
    await replayed;
    const { counters, requests, bytesOut } = await reportOf(tunnel);
    expect(counters).toMatchObject({ "requests:2xx": 1, "requests:4xx": 1 });
    expect([requests, bytesOut]).toEqual([2, 9]);
  });

  test("nothing for a host that has left it: the request goes on to another tunnel", async () => {
    const tunnel = new LiveTunnel();
    await tunnel.agent();
    await tunnel.stub.retire();
    expect((await tunnel.visit("/")).status).toBe(404);
    expect((await reportOf(tunnel)).counters).toEqual({});
  });
});

describe("what a tunnel has counted", () => {
  test("goes on where it was after sleep, in the same minute and the next ones", async () => {
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
      const { traffic } = await reportOf(tunnel);
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

  test("is told once, however often somebody asks", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    await visit(tunnel, agent);
    expect((await reportOf(tunnel)).traffic).not.toEqual([]);
    expect((await reportOf(tunnel)).traffic).toEqual([]);
  });

  test("has bytes of a long answer in the minutes in which they passed", async () => {
    const tunnel = new LiveTunnel();
    const noon = Math.ceil(Date.now() / 3600_000) * 3600_000;
    vi.useFakeTimers({ toFake: ["Date"], now: noon });
    try {
      const agent = await tunnel.agent({ tokenExpiresAtMs: noon + 3600_000 });
      const answer = tunnel.visit("/");
      const { stream } = await agent.asked();
      agent.answer(stream, 200);
      const reader = (await answer).body!.getReader();
      agent.send((writer) => writer.writeText(FRAME.data, 0, stream, "first"));
      await reader.read();
      vi.setSystemTime(noon + MINUTE_MS);
      agent.send((writer) => writer.writeText(FRAME.data, FLAG.end, stream, "second!"));
      await reader.read();
      const { traffic } = await reportOf(tunnel);
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
