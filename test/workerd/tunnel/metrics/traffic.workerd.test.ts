import { runDurableObjectAlarm, runInDurableObject } from "cloudflare:test";
import { describe, expect, test, vi } from "vitest";
import { FLAG, FRAME, RESET } from "../../../../protocol/wire/frames.ts";
import { REPORT_BURST } from "../../../../durable-objects/tunnel/metrics/report-pace.ts";
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
/** Each value that is written, by its key, and each alarm: on Cloudflare one row of the object's bill. */
function countWrites(storage: DurableObjectStorage, written: string[]): void {
  const put = storage.put.bind(storage) as (...args: unknown[]) => Promise<void>;
  const putSync = storage.kv.put.bind(storage.kv);
  const setAlarm = storage.setAlarm.bind(storage);
  Object.assign(storage, {
    put: (what: string | object, ...args: unknown[]) => {
      written.push(...(typeof what === "string" ? [what] : Object.keys(what)));
      return put(what, ...args);
    },
    setAlarm: (...args: Parameters<typeof setAlarm>) => {
      written.push("alarm");
      return setAlarm(...args);
    },
  });
  Object.assign(storage.kv, {
    put: (key: string, value: unknown) => {
      written.push(key);
      putSync(key, value);
    },
  });
}
const findReports = ({ id }: LiveTunnel) => rows.reports.filter(({ tunnelId }) => tunnelId === id);
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
      await getReport(tunnel);
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

  test("are reported within five seconds of a request, and within a minute when there were many reports", async () => {
    const tunnel = new LiveTunnel();
    const noon = Math.ceil(Date.now() / 3600_000) * 3600_000;
    vi.useFakeTimers({ toFake: ["Date"], now: noon });
    try {
      // No agent, so that none becomes silent while the clock moves.
      await tunnel.stub.scheduleExpiry(tunnel.id, noon + 24 * 3600_000);
      await tunnel.stub.setMaintenance(tunnel.id, { version: 1, isOn: true, message: null });
      const getDelay = async (nowMs: number) => {
        const reported = findReports(tunnel).length;
        vi.setSystemTime(nowMs);
        expect((await tunnel.visit("/")).status).toBe(503);
        for (let atMs = nowMs; atMs <= nowMs + MINUTE_MS; atMs += 5_000) {
          await tunnel.runAlarmAt(atMs);
          if (findReports(tunnel).length > reported) return atMs - nowMs;
        }
        return Infinity;
      };
      expect(await getDelay(noon)).toBeLessThanOrEqual(5_000);
      for (let n = 0; n < REPORT_BURST; n++) await getReport(tunnel);
      const delayMs = await getDelay(noon + 20_000);
      expect(delayMs).toBeGreaterThan(30_000);
      expect(delayMs).toBeLessThanOrEqual(MINUTE_MS);
      // After a pause the next request is reported soon again, also by a new instance.
      await tunnel.sleep();
      expect(await getDelay(noon + 3600_000)).toBeLessThanOrEqual(5_000);
      expect(findReports(tunnel).at(-1)?.counters).toMatchObject({ "refusals:maintenance": 3 });
    } finally {
      vi.useRealTimers();
    }
  });

  test("are reported without a wait when they cost a cent", async () => {
    const tunnel = new LiveTunnel();
    const agent = await tunnel.agent();
    for (let n = 0; n <= REPORT_BURST; n++) await tunnel.stub.sendReport();
    const usage = {
      tunnelId: tunnel.id,
      tokenNonce: "token-a",
      source: "relay-1",
      connections: 1,
      openConnections: 1,
    };
    await tunnel.stub.addRelayedUsage({ ...usage, bytesIn: 1_000, bytesOut: 0 });
    await runDurableObjectAlarm(tunnel.stub);
    expect(findReports(tunnel).at(-1)?.bytesIn).toBe(0);
    await tunnel.stub.addRelayedUsage({ ...usage, bytesIn: 200_000_000, bytesOut: 0 });
    const hasReport = () => findReports(tunnel).at(-1)?.bytesIn === 200_000_000;
    await vi.waitUntil(hasReport, WAIT_OPTIONS);
    agent.socket.close();
  });

  test("are reported in the buckets that have changed only, also when the object hibernates in between", async () => {
    const tunnel = new LiveTunnel();
    const noon = Math.ceil(Date.now() / 3600_000) * 3600_000;
    vi.useFakeTimers({ toFake: ["Date"], now: noon });
    try {
      await tunnel.stub.scheduleExpiry(tunnel.id, noon + 24 * 3600_000);
      await tunnel.stub.setMaintenance(tunnel.id, { version: 1, isOn: true, message: null });
      for (let minute = 1; minute <= 5; minute++) {
        vi.setSystemTime(noon + minute * MINUTE_MS);
        await tunnel.visit("/");
        await getReport(tunnel);
        await tunnel.sleep();
      }
      const { traffic } = findReports(tunnel).at(-1)!;
      expect(
        traffic.map(({ grain, startsAtMs, requests }) => [grain, startsAtMs, requests]),
      ).toEqual([
        ["hour", noon, 5],
        ["minute", noon + 5 * MINUTE_MS, 1],
      ]);
    } finally {
      vi.useRealTimers();
    }
  });

  test("cost at most three values and four alarms for a hundred requests and their report", async () => {
    const tunnel = new LiveTunnel();
    const noon = Math.ceil(Date.now() / 3600_000) * 3600_000;
    vi.useFakeTimers({ toFake: ["Date"], now: noon });
    try {
      const agent = await tunnel.agent({ tokenExpiresAtMs: noon + 24 * 3600_000 });
      await getReport(tunnel);
      const written: string[] = [];
      await runInDurableObject(tunnel.stub, (_, { storage }) => countWrites(storage, written));
      for (let n = 0; n < 100; n++) await visit(tunnel, agent);
      await tunnel.runAlarmAt(noon + 5_000);
      await vi.waitUntil(() => findReports(tunnel).at(-1)?.requests === 100, WAIT_OPTIONS);
      expect(written.filter((what) => what === "counters").length).toBeLessThanOrEqual(3);
      expect(written.filter((what) => what === "alarm").length).toBeLessThanOrEqual(4);
    } finally {
      vi.useRealTimers();
    }
  });

  test("that an earlier version has stored continue", async () => {
    const tunnel = new LiveTunnel();
    await runInDurableObject(tunnel.stub, (_, { storage: { kv } }) => {
      kv.put("tunnel-id", tunnel.id);
      kv.put("usage", { bytesIn: 10, bytesOut: 20, requests: 3 });
      kv.put("outcomes", { "requests:2xx": 3 });
      kv.put("report-sequence", 7);
      const account = { bytes: 30, requests: 3, isTold: true };
      kv.put(`spending:${new Date().toISOString().slice(0, 7)}:token-a`, account);
    });
    await tunnel.sleep();
    const agent = await tunnel.agent({ tokenNonce: "token-a" });
    await visit(tunnel, agent);
    expect(await getReport(tunnel)).toMatchObject({
      requests: 4,
      bytesOut: 25,
      counters: { "requests:2xx": 4 },
      spending: [{ tokenNonce: "token-a", bytes: 35, requests: 4 }],
    });
    expect(Math.min(...findReports(tunnel).map(({ sequence }) => sequence))).toBeGreaterThan(7);
    const earlierKeys = await runInDurableObject(tunnel.stub, (_, { storage: { kv } }) =>
      [...kv.list()]
        .map(([key]) => key)
        .filter((key) => /^(usage|outcomes|report-|spending:)/.test(key)),
    );
    expect(earlierKeys).toEqual([]);
  });

  test("that an earlier version has stored are reported with the next visit, also without an agent", async () => {
    const tunnel = new LiveTunnel();
    await runInDurableObject(tunnel.stub, (_, { storage: { kv } }) => {
      kv.put("tunnel-id", tunnel.id);
      kv.put("usage", { bytesIn: 10, bytesOut: 20, requests: 3 });
      kv.put("report-sequence", 7);
    });
    await tunnel.sleep();
    expect((await tunnel.visit("/")).status).toBe(502);
    // The alarm is due at once.
    await vi.waitUntil(() => findReports(tunnel).length > 0, WAIT_OPTIONS);
    expect(findReports(tunnel)[0]).toMatchObject({ bytesIn: 10, bytesOut: 20 });
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
