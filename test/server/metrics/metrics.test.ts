import type { SQL } from "drizzle-orm";
import { PgDialect } from "drizzle-orm/pg-core";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TunnelReport } from "../../../durable-objects/rpc.ts";
import { TRAFFIC_HOURS_KEEP_MS, TRAFFIC_MINUTES_KEEP_MS } from "../../../protocol/limits.ts";
import { COUNTERS_FOLD_AFTER_MS } from "../../../workers/limits.ts";
import { SCRAPE_MAX_TUNNELS } from "../../../workers/store/metrics/metrics.ts";
import type { Breakdown, Metrics, SeriesPoint } from "../../../protocol/schemas/metrics.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import { toSeries, getSpan, WINDOWS } from "../../../workers/store/metrics/metric-windows.ts";
import { buildCountersUpsert, buildTrafficUpsert } from "../../../workers/store/metrics/traffic.ts";
import {
  createCaller,
  mintToken,
  startApi,
  type Person,
  type TestApi,
} from "../../harness/server/api.ts";
import { findProblems, readExposition, type Exposition } from "../../harness/formats/exposition.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../../shared/time.ts";

let api: TestApi;
let owner: Person;
/** A pool, because concurrent reports need several connections. */
let database: pg.Pool;
beforeAll(async () => {
  api = await startApi();
  database = new pg.Pool({ connectionString: await api.server.databaseUrl() });
  database.on("error", () => undefined);
});
afterAll(async () => {
  await database.end();
  await api.stop();
});

const dialect = new PgDialect({ casing: "snake_case" });
async function run(statement: SQL): Promise<void> {
  const { sql, params } = dialect.sqlToQuery(statement);
  await database.query(sql, params);
}

/** Stores a report as a tunnel's object would send it. */
async function report(tunnelId: string, fields: Partial<TunnelReport>): Promise<void> {
  const complete: TunnelReport = {
    tunnelId,
    sequence: 1,
    agentConnected: false,
    lastSeenAtMs: null,
    bytesIn: 0,
    bytesOut: 0,
    requests: 0,
    maintenance: false,
    counters: {},
    traffic: [],
    spending: [],
    ...fields,
  };
  await run(buildCountersUpsert(complete));
  await run(buildTrafficUpsert(complete));
}

async function createTunnel(of: Person = owner): Promise<string> {
  return (await of.post<Tunnel>("/tunnels", { localPort: 1 })).body.id;
}
const inMinute = (startsAtMs: number, requests: number) =>
  ({
    grain: "minute",
    startsAtMs,
    requests,
    bytesIn: 2 * requests,
    bytesOut: 3 * requests,
  }) as const;
const inHour = (startsAtMs: number, requests: number) =>
  ({ ...inMinute(startsAtMs, requests), grain: "hour" }) as const;

const metrics = async (by: Person = owner) => (await by.get<Metrics>("/metrics")).body;
const series = async (query: string, by: Person = owner) =>
  (await by.get<SeriesPoint[]>(`/metrics/timeseries?${query}`)).body;
const sumValues = (points: SeriesPoint[]) => points.reduce((sum, { value }) => sum + value, 0);
async function scrape(by: Person = owner): Promise<Exposition> {
  const { body, headers } = await by.get<string>("/metrics/prometheus");
  expect(headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return readExposition(body);
}

describe("the series of", () => {
  beforeAll(async () => {
    owner = await api.owner();
  });

  test.each(["1h", "24h", "7d", "30d"] as const)(
    "%s includes its first millisecond, and nothing older",
    async (window) => {
      const by = await api.owner();
      const tunnelId = await createTunnel(by);
      const { grain, bucketMs } = WINDOWS[window];
      const { fromMs, untilMs } = getSpan(window, Date.now());
      const bucket = grain === "minute" ? inMinute : inHour;
      const rowMs = grain === "minute" ? MINUTE_MS : HOUR_MS;
      await report(tunnelId, {
        // Two steps after the start, because the window may move by one while the test runs.
        traffic: [
          bucket(fromMs - rowMs, 1_000),
          bucket(fromMs + bucketMs, 10),
          bucket(fromMs + 2 * bucketMs, 1),
          bucket(untilMs - rowMs, 5),
        ],
      });
      const points = await series(`metric=requests&window=${window}`, by);
      expect(points).toHaveLength(WINDOWS[window].buckets);
      expect(sumValues(points)).toBe(16);
      const at = (ms: number) =>
        points.find(({ timestamp }) => Date.parse(timestamp) === ms)?.value;
      expect([at(fromMs + bucketMs), at(fromMs + 2 * bucketMs)]).toEqual([10, 1]);
      expect(at(untilMs - bucketMs)).toBe(5);
      expect(sumValues(await series(`metric=bytes_in&window=${window}`, by))).toBe(32);
      expect(sumValues(await series(`metric=bytes_out&window=${window}`, by))).toBe(48);
    },
  );

  test("a tunnel without visitors has only zeros, for 24 hours by default", async () => {
    const points = await series("metric=requests", await api.owner());
    expect(points).toEqual(
      toSeries(getSpan("24h", Date.parse(points.at(-1)!.timestamp)), new Map()),
    );
  });

  test("all tunnels is their sum, without those of other organizations", async () => {
    const [by, other] = [await api.owner(), await api.owner()];
    const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
    for (const count of [1, 2, 4]) {
      await report(await createTunnel(by), { traffic: [inMinute(minute, count)] });
    }
    await report(await createTunnel(other), { traffic: [inMinute(minute, 100)] });
    expect(sumValues(await series("metric=requests&window=1h", by))).toBe(7);
    expect(await metrics(by)).toEqual({
      total_tunnels: 3,
      active_tunnels: 0,
      requests_last_24h: 7,
      bytes_in_last_24h: 14,
      bytes_out_last_24h: 21,
    });
    expect(sumValues(await series("metric=requests&window=24h", by))).toBe(7);
  });

  test("one tunnel has only its own traffic, and that of another organization is not found", async () => {
    const [by, other] = [await api.owner(), await api.owner()];
    const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
    const [one, two] = [await createTunnel(by), await createTunnel(by)];
    await report(one, { traffic: [inMinute(minute, 1)] });
    await report(two, { traffic: [inMinute(minute, 2)] });
    const query = `metric=requests&window=1h&tunnel_id=${two}`;
    expect(sumValues(await series(query, by))).toBe(2);
    expect(await other.get(`/metrics/timeseries?${query}`)).toMatchObject({ status: 404 });
    expect(await other.get(`/metrics/breakdown?tunnel_id=${two}`)).toMatchObject({ status: 404 });
    const { body } = await by.get<Breakdown>("/metrics/breakdown?window=1h");
    const traffic = (tunnel_id: string, requests: number) =>
      expect.objectContaining({
        tunnel_id,
        requests,
        bytes_in: 2 * requests,
        bytes_out: 3 * requests,
      });
    expect(body.tunnels).toEqual([traffic(two, 2), traffic(one, 1)]);
    expect((await other.get<Breakdown>("/metrics/breakdown?window=1h")).body.tunnels).toEqual([]);
  });

  test.each([
    "",
    "metric=latency",
    "metric=requests&window=2h",
    "metric=requests&window=",
    "metric=requests&tunnel_id=x",
  ])("an invalid query is refused: ?%s", async (query) => {
    const { status, body } = await owner.get<{ error: string }>(`/metrics/timeseries?${query}`);
    expect([status, body.error]).toEqual([400, "invalid_request"]);
  });
});

describe("reports", () => {
  const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
  const traffic = (requests: number) => [inMinute(minute, requests)];
  const counted = async () => ({
    series: (await metrics()).requests_last_24h,
    counters: (await scrape()).sum("underpass_requests_total"),
  });

  test("that arrive twice, late or concurrently count once", async () => {
    owner = await api.owner();
    const tunnelId = await createTunnel();
    const buildReport = (requests: number) => ({
      sequence: requests,
      counters: { "requests:2xx": requests },
      traffic: traffic(requests),
    });
    await report(tunnelId, buildReport(3));
    await report(tunnelId, buildReport(3));
    expect(await counted()).toEqual({ series: 3, counters: 3 });
    await Promise.all(
      [9, 4, 8, 5, 7, 6].map((requests) => report(tunnelId, buildReport(requests))),
    );
    await report(tunnelId, buildReport(2));
    expect(await counted()).toEqual({ series: 9, counters: 9 });
  });

  test("of a deleted tunnel still count, also after its counters were added to the organization's", async () => {
    owner = await api.owner();
    const [deletedId, otherId] = [await createTunnel(), await createTunnel()];
    const buildReport = (requests: number) => ({
      sequence: requests,
      counters: { "requests:2xx": requests, "latency:sum": 5 },
      traffic: traffic(requests),
    });
    await report(deletedId, buildReport(3));
    await report(otherId, buildReport(10));
    await owner.delete(`/tunnels/${deletedId}`);
    expect(await counted()).toEqual({ series: 13, counters: 13 });
    await report(deletedId, buildReport(4));
    expect(await counted()).toEqual({ series: 14, counters: 14 });
    await api.runCron();
    expect(await api.sql("select 1 from ended_counters where org_id = $1", [owner.orgId])).toEqual(
      [],
    );
    await api.sql("update tunnel_counters set ended_at = $1 where tunnel_id = $2", [
      new Date(Date.now() - COUNTERS_FOLD_AFTER_MS - MINUTE_MS),
      deletedId,
    ]);
    await Promise.all([api.runCron(), api.runCron()]);
    expect(await counted()).toEqual({ series: 14, counters: 14 });
    expect(
      await api.sql("select counters from ended_counters where org_id = $1", [owner.orgId]),
    ).toEqual([
      { counters: { "requests:2xx": 4, "latency:sum": 5, "bytes:in": 0, "bytes:out": 0 } },
    ]);
    await report(deletedId, { ...buildReport(50), traffic: [] });
    await api.runCron();
    expect((await counted()).counters).toBe(14);
  });

  test("of several ended tunnels are added to the organization's", async () => {
    owner = await api.owner();
    for (const requests of [1, 2]) {
      const tunnelId = await createTunnel();
      await report(tunnelId, {
        counters: { "requests:2xx": requests, "refusals:maintenance": 1 },
      });
      await owner.delete(`/tunnels/${tunnelId}`);
      await api.sql(
        "update tunnel_counters set ended_at = now() - interval '2 days' where tunnel_id = $1",
        [tunnelId],
      );
      await api.runCron();
    }
    const { value } = await scrape();
    expect(value("underpass_requests_total", { code: "2xx" })).toBe(3);
    expect(value("underpass_refusals_total", { error: "maintenance" })).toBe(2);
  });

  test("of a deleted organization leave nothing behind", async () => {
    owner = await api.owner();
    const tunnelId = await createTunnel();
    await report(tunnelId, { counters: { "requests:2xx": 1 }, traffic: traffic(1) });
    await owner.delete(`/orgs/${owner.orgId}`);
    await report(tunnelId, { sequence: 2, counters: { "requests:2xx": 2 }, traffic: traffic(2) });
    for (const table of ["traffic", "tunnel_counters", "ended_counters"]) {
      expect(await api.sql(`select 1 from ${table} where org_id = $1`, [owner.orgId])).toEqual([]);
    }
  });
});

test("the scheduled job deletes minutes and hours that no window shows", async () => {
  owner = await api.owner();
  const tunnelId = await createTunnel();
  const now = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
  const [minutes, hours] = [TRAFFIC_MINUTES_KEEP_MS, TRAFFIC_HOURS_KEEP_MS];
  await report(tunnelId, {
    traffic: [
      inMinute(now - minutes + HOUR_MS, 1),
      inMinute(now - minutes - MINUTE_MS, 2),
      inHour(now - minutes - HOUR_MS, 4),
      inHour(now - hours + 2 * HOUR_MS, 8),
      inHour(now - hours - HOUR_MS, 16),
    ],
  });
  await api.runCron();
  const remaining = await api.sql<{ requests: string }>(
    "select requests from traffic where tunnel_id = $1 order by requests",
    [tunnelId],
  );
  expect(remaining.map(({ requests }) => Number(requests))).toEqual([1, 4, 8]);
  expect(minutes).toBeGreaterThan(DAY_MS + 15 * MINUTE_MS);
  expect(hours).toBeGreaterThan(31 * DAY_MS);
});

describe("a scrape", () => {
  test("lists the busiest tunnels up to the limit, and counts all", async () => {
    owner = await api.owner();
    const first = await createTunnel();
    await api.sql(
      `insert into tunnels (org_id, project_id, name, subdomain, protocol, local_port, total_requests)
       select org_id, project_id, 'many', 'many-' || n || '-' || left(id::text, 8), 'http', 1, n
       from tunnels, generate_series(1, $2::int) n where id = $1`,
      [first, SCRAPE_MAX_TUNNELS],
    );
    await api.sql(
      `insert into tunnel_counters (tunnel_id, org_id, sequence, counters)
       select id, org_id, 1, '{"requests:2xx": 2}' from tunnels where org_id = $1`,
      [owner.orgId],
    );
    const exposition = await scrape();
    expect(findProblems(exposition)).toEqual([]);
    const { families, value } = exposition;
    const named = families.get("underpass_tunnel_agent_connected")!.samples;
    expect(named).toHaveLength(SCRAPE_MAX_TUNNELS);
    expect(named.map(({ labels }) => labels.tunnel_id)).not.toContain(first);
    expect(value("underpass_tunnels")).toBe(SCRAPE_MAX_TUNNELS + 1);
    expect(value("underpass_requests_total", { code: "2xx" })).toBe(2 * (SCRAPE_MAX_TUNNELS + 1));
  });

  test("accepts a capability token, for its own organization", async () => {
    owner = await api.owner();
    await report(await createTunnel(), { counters: { "requests:2xx": 3 } });
    const scraper = await mintToken(owner);
    const confined = await mintToken(owner, { allowedSubdomains: ["shop"] });
    const machine = createCaller(api.server, { authorization: `Bearer ${scraper.wireBytes}` });
    const confinedMachine = createCaller(api.server, {
      authorization: `Bearer ${confined.wireBytes}`,
    });
    const { status, body } = await machine.get<string>("/metrics/prometheus");
    expect(status).toBe(200);
    expect(readExposition(body).sum("underpass_requests_total")).toBe(3);
    expect((await machine.get("/metrics")).status).toBe(401);
    expect((await confinedMachine.get("/metrics/prometheus")).status).toBe(403);
    await owner.delete(`/tokens/${scraper.nonce}`);
    expect((await machine.get("/metrics/prometheus")).status).toBe(401);
  });
});
