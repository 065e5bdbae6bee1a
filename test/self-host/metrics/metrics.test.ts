/** The metrics of a whole server, as the operator's Prometheus scrapes them. */
import { readFile } from "node:fs/promises";
import { once } from "node:events";
import { request } from "node:http";
import { connect } from "node:net";
import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import WebSocket from "ws";
import { parse } from "yaml";
import { ROOT } from "../../../self-host/build/build.ts";
import { connectDatabase } from "../../../self-host/postgres/migrate.ts";
import { requestText } from "../../../self-host/internal-requests.ts";
import { METRICS_CONNECTIONS_MAX } from "../../../self-host/metrics/metrics-server.ts";
import {
  findProblems,
  promtool,
  readExposition,
  type Exposition,
} from "../../harness/formats/exposition.ts";
import {
  AlertRules,
  checkRules,
  Dashboard,
  findOverlaps,
  findUnknownNames,
} from "../../harness/formats/monitoring.ts";
import { reservePort } from "../../harness/ports.ts";
import { WAIT_MAX_MS, WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { startLocalSite } from "../../harness/tunnel/local-site.ts";
import { OK, startRawOrigin, type RawOrigin } from "../../harness/tunnel/origin.ts";
import {
  startTunnelOwner,
  type OwnedTunnel,
  type TunnelOwner,
} from "../../harness/tunnel/owned-tunnel.ts";
import { exchange, findHeader } from "../../harness/tunnel/raw-http.ts";

const VISITORS = 50;
/** More than all families and labels need, and less than one label by tenant would take. */
const SERIES_MAX = 300;

let owner: TunnelOwner;
let origin: RawOrigin;
let tunnel: OwnedTunnel;
let url: string;
let token: string;
beforeAll(async () => {
  const port = await reservePort();
  const started = startTunnelOwner({
    relay: true,
    env: {
      METRICS_PORT: String(port),
      TRACE_REQUESTS: "all",
      RELAY_BIND: findNetworkAddress() ?? "127.0.0.1",
    },
  });
  [owner, origin] = await Promise.all([started, startRawOrigin()]);
  origin.respond = ({ target }) =>
    target === "/missing"
      ? "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
      : "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
  tunnel = await owner.expose("server-metrics", origin.port);
  url = `http://127.0.0.1:${port}/metrics`;
  const secrets = await readFile(join(owner.api.server.dataDir, "secrets.json"), "utf8");
  token = (JSON.parse(secrets) as { METRICS_TOKEN: string }).METRICS_TOKEN;
});
afterAll(async () => {
  await owner.stop();
  await origin.stop();
});

/** An address on which the relay does not trust callers without its secret. */
function findNetworkAddress(): string | undefined {
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal)?.address;
}

function scrapeText(headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { headers: { authorization: `Bearer ${token}`, ...headers } });
}

async function scrape(): Promise<Exposition> {
  return readExposition(await (await scrapeText()).text());
}

const requests = (metrics: Exposition, handler: string, code: string) =>
  metrics.value("underpass_server_requests_total", { handler, code });

describe("a scrape", () => {
  test("is valid, and has all parts of the server", async () => {
    await expect
      .poll(async () => (await scrape()).value("underpass_relay_linked"), WAIT_OPTIONS)
      .toBe(1);
    const text = await (await scrapeText()).text();
    const metrics = readExposition(text);
    expect(findProblems(metrics)).toEqual([]);
    const checked = await promtool(text);
    if (checked) expect(checked).toEqual({ code: 0, output: "" });
    for (const part of ["server", "front_proxy", "worker", "postgres", "relay"]) {
      expect(metrics.value("underpass_up", { part }), part).toBe(1);
    }
    expect(metrics.value("underpass_server_tunnels_active")).toBe(1);
    expect(metrics.value("underpass_server_agents_connected")).toBe(1);
    expect(metrics.value("underpass_server_connections", { kind: "program" })).toBeGreaterThan(0);
    expect(metrics.value("underpass_relay_ports")).toBeGreaterThan(0);
    const others = ["front_proxy", "workerd", "postgres", "relay"];
    // Other systems than Linux tell nothing about other processes.
    for (const name of ["server", ...(process.platform === "linux" ? others : [])]) {
      const family = "underpass_server_process_resident_memory_bytes";
      expect(metrics.value(family, { process: name }), name).toBeGreaterThan(1e6);
    }
  });

  test("counts what fifty visitors saw", async () => {
    const before = await scrape();
    const answers = await Promise.all(
      Array.from({ length: VISITORS }, (_, at) => tunnel.visit(at % 5 === 0 ? "/missing" : "/")),
    );
    const seen = Map.groupBy(answers, ({ status }) => status);
    expect([seen.get(200)?.length, seen.get(404)?.length]).toEqual([40, 10]);
    const after = await scrape();
    const grown = (code: string) =>
      requests(after, "tunnel", code) - requests(before, "tunnel", code);
    expect(["2xx", "4xx", "5xx", "left"].map(grown)).toEqual([40, 10, 0, 0]);
    const durations = "underpass_server_request_duration_seconds_count";
    const count = (metrics: Exposition) => metrics.value(durations, { handler: "tunnel" });
    expect(count(after) - count(before)).toBe(VISITORS);
    const sent = (metrics: Exposition) => metrics.value("underpass_server_transmit_bytes_total");
    expect(sent(after) - sent(before)).toBeGreaterThan(VISITORS * "HTTP/1.1 200 OK".length);
  });

  test("counts each request of one connection, what the front proxy refuses, and who leaves", async () => {
    const before = await scrape();
    const { port } = owner.api.server;
    const host = `server-metrics.localhost:${port}`;
    const get = `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
    await exchange(port, "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    await exchange(port, get);
    const arrived = new Promise<void>((resolve) => (origin.respond = () => resolve()));
    const leaving = request({ port, host: "127.0.0.1", headers: { host } });
    leaving.on("error", () => undefined).end();
    await arrived;
    leaving.destroy();
    await vi.waitUntil(async () => requests(await scrape(), "tunnel", "left") === 1, WAIT_OPTIONS);
    const after = await scrape();
    expect(requests(after, "front_proxy", "4xx") - requests(before, "front_proxy", "4xx")).toBe(1);
    const refusals = (metrics: Exposition) =>
      metrics.value("underpass_server_refusals_total", { reason: "invalid_host" });
    expect(refusals(after) - refusals(before)).toBe(1);
  });

  test("counts the open WebSockets of visitors", async () => {
    await using site = await startLocalSite();
    await owner.expose("server-metrics-site", site.port);
    const headers = { host: "server-metrics-site.localhost" };
    const open = async () =>
      (await scrape()).value("underpass_server_connections", { kind: "visitor_websocket" });
    expect(await open()).toBe(0);
    const socket = new WebSocket(`ws://127.0.0.1:${owner.api.server.port}/socket`, { headers });
    socket.on("error", () => undefined);
    await expect.poll(open, WAIT_OPTIONS).toBe(1);
    socket.terminate();
    await expect.poll(open, WAIT_OPTIONS).toBe(0);
  });

  test("has no series by tenant: more tunnels and hosts add none", async () => {
    const count = ({ families }: Exposition) =>
      [...families.values()].reduce((sum, { samples }) => sum + samples.length, 0);
    const before = await scrape();
    await Promise.all(
      Array.from({ length: 5 }, (_, at) => owner.expose(`server-metrics-${at}`, origin.port)),
    );
    await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        exchange(
          owner.api.server.port,
          `GET /${at} HTTP/1.1\r\nHost: nothing-${at}.localhost\r\n\r\n`,
        ),
      ),
    );
    const after = await scrape();
    expect(count(after)).toBe(count(before));
    expect(count(after)).toBeLessThan(SERIES_MAX);
  });

  test("is written as OpenMetrics for a scraper that asks for it", async () => {
    const accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    const response = await scrapeText({ accept });
    expect(response.headers.get("content-type")).toMatch(/^application\/openmetrics-text; /);
    const text = await response.text();
    expect(text.endsWith("\n# EOF\n")).toBe(true);
    expect(text).toContain("# TYPE underpass_server_requests counter\n");
    expect(text).toContain('le="1.0"');
  });
});

describe("a caller", () => {
  test.each([
    ["without a token", {}],
    ["with a wrong one", { authorization: `Bearer ${"x".repeat(64)}` }],
    ["with another scheme", { authorization: "Basic abc" }],
  ])("%s gets nothing", async (_, headers) => {
    const response = await fetch(url, { headers });
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(await response.text()).not.toContain("underpass_");
  });

  test("hold at most the connections of the bound, and scrapes go on afterwards", async () => {
    const { port } = new URL(url);
    const silent = await Promise.all(
      Array.from({ length: METRICS_CONNECTIONS_MAX + 10 }, async () => {
        const socket = connect(Number(port), "127.0.0.1");
        socket.on("error", () => undefined);
        await once(socket, "connect");
        return socket.resume();
      }),
    );
    await expect
      .poll(() => silent.filter(({ destroyed }) => destroyed).length, WAIT_OPTIONS)
      .toBeGreaterThanOrEqual(10);
    for (const socket of silent) socket.destroy();
    const status = () =>
      scrapeText().then(
        (response) => response.status,
        () => "refused",
      );
    await expect.poll(status, WAIT_OPTIONS).toBe(200);
  });

  test("finds nothing at other paths, and can't write", async () => {
    const headers = { authorization: `Bearer ${token}` };
    expect((await fetch(new URL("/", url), { headers })).status).toBe(404);
    expect((await fetch(url, { method: "POST", headers })).status).toBe(405);
  });
});

test("one id leads through the log: the front proxy, the edge, the tunnel and the agent, each with its time", async () => {
  origin.respond = () => OK;
  const reported = once(tunnel.agent.events, "request");
  const { headers } = await tunnel.visit("/secret-path?secret=query");
  const id = findHeader(headers, "underpass-request-id")!;
  const find = () =>
    owner.api.server.output
      .split("\n")
      .filter((line) => line.includes(id))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  await expect.poll(() => find().length, WAIT_OPTIONS).toBe(3);
  const byPart = new Map(find().map((entry) => [entry.part, entry]));
  for (const part of ["front_proxy", "edge", "tunnel"]) {
    const entry = byPart.get(part);
    expect(entry, part).toMatchObject({ message: "request_traced", requestId: id, status: 200 });
    expect(entry?.durationMs, part).toBeTypeOf("number");
  }
  expect(byPart.get("tunnel")).toMatchObject({ tunnelId: tunnel.id });
  expect((await reported)[0]).toMatchObject({ requestId: id, durationMs: expect.any(Number) });
  expect(owner.api.server.output).not.toContain("secret-path");
  expect(owner.api.server.output).not.toContain("secret=query");
});

/** Tested in self-host/https. */
const ONLY_WITH_HTTPS = new Set(["underpass_server_certificate_expiry_timestamp_seconds"]);

describe("what self-host/monitoring/ has for the operator", () => {
  const readMonitoring = (file: string) =>
    readFile(join(ROOT, "self-host/monitoring", file), "utf8");

  test("the dashboard is complete, and no panel covers another", async () => {
    const dashboard = Dashboard.parse(JSON.parse(await readMonitoring("grafana-dashboard.json")));
    expect(findOverlaps(dashboard)).toEqual([]);
    expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
    expect(dashboard.templating.list).toContainEqual({ name: "datasource", type: "datasource" });
  });

  test("every expression names metrics and labels that a server has", async () => {
    const { panels } = Dashboard.parse(JSON.parse(await readMonitoring("grafana-dashboard.json")));
    const rules = AlertRules.parse(parse(await readMonitoring("alerts.yml")));
    const expressions = [
      ...panels.flatMap((panel) =>
        panel.type === "row" ? [] : panel.targets.map(({ expr }) => expr),
      ),
      ...rules.groups.flatMap((group) => group.rules.map(({ expr }) => expr)),
    ];
    expect(expressions.length).toBeGreaterThan(40);
    // The relay knows its reserved ports when the API has sent them.
    const findUnknown = async () => {
      const metrics = await scrape();
      return expressions
        .flatMap((expression) => findUnknownNames(expression, metrics))
        .filter((name) => !ONLY_WITH_HTTPS.has(name));
    };
    await expect.poll(findUnknown, WAIT_OPTIONS).toEqual([]);
    const metrics = await scrape();
    expect(
      findUnknownNames('rate(underpass_nothing[5m]) / underpass_up{nothing="a"}', metrics),
    ).toEqual(["underpass_nothing", "underpass_up{nothing}"]);
  });

  test("promtool accepts the alert rules", async ({ skip }) => {
    const checked = await checkRules(join(ROOT, "self-host/monitoring/alerts.yml"));
    if (!checked) return skip("promtool is not installed");
    expect(checked).toMatchObject({ code: 0 });
  });
});

test("a query of the Worker that fails is one line of the log, and the other parts are complete", async () => {
  const client = await connectDatabase(await owner.api.server.databaseUrl());
  await client.query("alter table outbox rename to renamed");
  try {
    const metrics = await scrape();
    expect(metrics.value("underpass_up", { part: "worker" })).toBe(0);
    expect(metrics.value("underpass_up", { part: "postgres" })).toBe(1);
    const socketPath = join(owner.api.server.dataDir, "run/control.sock");
    const cron = await requestText({ socketPath, method: "POST", path: "/cron" }, WAIT_MAX_MS);
    expect(JSON.parse(cron)).toEqual({ failed: 2 });
  } finally {
    await client.query("alter table renamed rename to outbox");
    await client.end();
  }
  const { output } = owner.api.server;
  expect(output.match(/"message":"control_failed"/g)).toHaveLength(1);
  expect(output).not.toContain("Uncaught exception");
});

test("a PostgreSQL that does not answer is shown, beside everything else", async () => {
  const pid = await owner.api.server.getPid("postgres");
  process.kill(pid, "SIGKILL");
  await vi.waitUntil(async () => {
    const metrics = await scrape();
    return metrics.value("underpass_server_restarts_total", { process: "postgres" }) === 1;
  }, WAIT_OPTIONS);
  await vi.waitUntil(
    async () => (await scrape()).value("underpass_up", { part: "postgres" }) === 1,
    WAIT_OPTIONS,
  );
  // It accepts connections and answers none of them, as with a disk that hangs.
  const restarted = await owner.api.server.getPid("postgres");
  process.kill(restarted, "SIGSTOP");
  try {
    const metrics = await scrape();
    expect(metrics.value("underpass_up", { part: "postgres" })).toBe(0);
    for (const part of ["server", "front_proxy", "relay"]) {
      expect(metrics.value("underpass_up", { part }), part).toBe(1);
    }
    expect(requests(metrics, "tunnel", "2xx")).toBeGreaterThan(0);
  } finally {
    process.kill(restarted, "SIGCONT");
  }
});
