import { describe, expect, test } from "vitest";
import { LATENCY_BOUNDS_MS } from "../../../../../protocol/limits.ts";
import {
  formatExposition,
  type MetricsSnapshot,
} from "../../../../../workers/api/metrics/prometheus.ts";
import { findProblems, promtool, readExposition } from "../../../../harness/formats/exposition.ts";

const NOTHING: MetricsSnapshot = {
  tunnels: { total: 0, active: 0 },
  agents: 0,
  counters: {},
  busiest: [],
};
const SCRAPED: MetricsSnapshot = {
  tunnels: { total: 3, active: 2 },
  agents: 1,
  counters: {
    "requests:2xx": 5,
    "requests:5xx": 2,
    "requests:left": 1,
    "refusals:maintenance": 2,
    "latency:5": 1,
    "latency:250": 3,
    "latency:more": 1,
    "latency:sum": 61_234,
    "bytes:in": 10,
    "bytes:out": 2 ** 53 - 1,
  },
  busiest: [
    { id: "a", subdomain: "shop", agentConnected: true, counters: { "requests:2xx": 5 } },
    { id: "b", subdomain: "new", agentConnected: false, counters: null },
  ],
};

describe("an exposition", () => {
  test.each([
    ["of nothing", NOTHING],
    ["of everything", SCRAPED],
  ])("%s passes the rules of promtool", (_, scraped) => {
    const text = formatExposition(scraped);
    expect(findProblems(readExposition(text))).toEqual([]);
  });

  test("is accepted by the real promtool", async (context) => {
    const report = await promtool(formatExposition(SCRAPED));
    if (report === null) return context.skip("promtool is not installed on this machine");
    expect(report).toEqual({ code: 0, output: "" });
  });

  test("contains the counters", () => {
    const { value } = readExposition(formatExposition(SCRAPED));
    expect(value("underpass_tunnels")).toBe(3);
    expect(value("underpass_tunnels_active")).toBe(2);
    expect(value("underpass_agents_connected")).toBe(1);
    expect(value("underpass_requests_total", { code: "2xx" })).toBe(5);
    expect(value("underpass_requests_total", { code: "left" })).toBe(1);
    expect(value("underpass_refusals_total", { error: "maintenance" })).toBe(2);
    expect(value("underpass_bytes_in_total")).toBe(10);
    expect(value("underpass_bytes_out_total")).toBe(2 ** 53 - 1);
    expect(value("underpass_tunnel_requests_total", { tunnel: "shop", code: "2xx" })).toBe(5);
    expect(value("underpass_tunnel_agent_connected", { tunnel_id: "b" })).toBe(0);
  });

  test("has zeros for every outcome and bucket from the start, so that the first request is an increase", () => {
    const { families, value } = readExposition(formatExposition(NOTHING));
    expect(families.get("underpass_requests_total")?.samples).toHaveLength(7);
    expect(value("underpass_requests_total", { code: "5xx" })).toBe(0);
    expect(families.get("underpass_request_duration_seconds")?.samples).toHaveLength(
      LATENCY_BOUNDS_MS.length + 3,
    );
  });

  test("has cumulative buckets in seconds", () => {
    const { value } = readExposition(formatExposition(SCRAPED));
    const upTo = (le: string) => value("underpass_request_duration_seconds_bucket", { le });
    expect([upTo("0.005"), upTo("0.1"), upTo("0.25"), upTo("60"), upTo("+Inf")]).toEqual([
      1, 1, 4, 4, 5,
    ]);
    expect(value("underpass_request_duration_seconds_sum")).toBe(61.234);
    expect(value("underpass_request_duration_seconds_count")).toBe(5);
  });

  test("escapes every character of a label's value", () => {
    const subdomain = 'a"b\\c\nd} 1\n# TYPE x';
    const text = formatExposition({
      ...NOTHING,
      busiest: [{ id: "a", subdomain, agentConnected: true, counters: null }],
    });
    const { value } = readExposition(text);
    expect(value("underpass_tunnel_agent_connected", { tunnel: subdomain })).toBe(1);
  });
});
