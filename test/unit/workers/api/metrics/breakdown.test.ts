import { expect, test } from "vitest";
import {
  BREAKDOWN_MAX_PATHS,
  BreakdownCounter,
} from "../../../../../durable-objects/tunnel/captures/reading/breakdown.ts";
import type { CaptureRecord } from "../../../../../durable-objects/tunnel/captures/record.ts";
import { buildBreakdown } from "../../../../../workers/api/metrics/breakdown.ts";

type Counted = Partial<Pick<CaptureRecord, "path" | "status" | "latencyMs" | "error">>;

function count(records: Counted[], isComplete = true) {
  const counter = new BreakdownCounter();
  for (const record of records) {
    counter.count({ path: "/", status: 200, latencyMs: 1, error: null, ...record });
  }
  return counter.finish({ isComplete });
}

test("requests of several tunnels are summed by status, error and latency", () => {
  const one = count([
    { latencyMs: 5 },
    { latencyMs: 6 },
    { status: 502, error: "agent_offline", latencyMs: 10_000 },
    { status: 500, latencyMs: 60_001 },
  ]);
  const other = count([
    { status: 502, error: "agent_offline", latencyMs: null },
    { status: 401, error: "unauthorized" },
    { status: null, latencyMs: null },
  ]);
  const { statuses, errors, latency, ...rest } = buildBreakdown(
    [],
    [
      { tunnelId: "one", captured: one },
      { tunnelId: "other", captured: other },
    ],
  );
  expect(rest).toMatchObject({ captured_requests: 7, is_complete: true });
  expect(Object.fromEntries(statuses.map(({ status, requests }) => [status, requests]))).toEqual({
    "1xx": 0,
    "2xx": 2,
    "3xx": 0,
    "4xx": 1,
    "5xx": 3,
    none: 1,
  });
  expect(errors).toEqual([
    { error: "agent_offline", requests: 2 },
    { error: "unauthorized", requests: 1 },
  ]);
  expect(latency.filter(({ requests }) => requests > 0)).toEqual([
    { up_to_ms: 5, requests: 1 },
    { up_to_ms: 10, requests: 1 },
    { up_to_ms: null, requests: 1 },
  ]);
});

test("a response that breaks off after its head counts by the time to it, and an answer of the service does not", () => {
  const counted = count([
    { status: 200, error: "origin_failed", latencyMs: 8 },
    { status: 101, error: "agent_offline", latencyMs: 30 },
    { status: 502, error: "origin_failed", latencyMs: 5 },
    { status: 504, error: "origin_timeout", latencyMs: 30_000 },
    { status: null, error: null, latencyMs: null },
  ]);
  const { latency, paths } = buildBreakdown([], [{ tunnelId: "one", captured: counted }]);
  expect(latency.filter(({ requests }) => requests > 0)).toEqual([
    { up_to_ms: 10, requests: 1 },
    { up_to_ms: 50, requests: 1 },
  ]);
  expect(paths).toMatchObject([{ requests: 5, average_latency_ms: 19 }]);
});

test("the same path of two tunnels is listed twice, the busiest paths first, up to a limit", () => {
  const many = Array.from({ length: 2 * BREAKDOWN_MAX_PATHS }, (_, at) => ({ path: `/${at}` }));
  const one = count([...many, { path: "/hot", latencyMs: 10 }, { path: "/hot", latencyMs: 21 }]);
  const other = count(
    [
      { path: "/hot", status: 503 },
      { path: "/hot" },
      { path: "/hot", error: "internal", latencyMs: null },
    ],
    false,
  );
  const { paths, is_complete } = buildBreakdown(
    [],
    [
      { tunnelId: "one", captured: one },
      { tunnelId: "other", captured: other },
    ],
  );
  expect(is_complete).toBe(false);
  expect(paths).toHaveLength(BREAKDOWN_MAX_PATHS);
  expect(paths.slice(0, 2)).toEqual([
    {
      tunnel_id: "other",
      path: "/hot",
      requests: 3,
      failed_requests: 1,
      average_latency_ms: 1,
    },
    { tunnel_id: "one", path: "/hot", requests: 2, failed_requests: 0, average_latency_ms: 16 },
  ]);
});

test("names of an object's prototype are paths like any other", () => {
  const { paths } = count([{ path: "__proto__" }, { path: "constructor" }]);
  expect(paths.map(({ path }) => path)).toEqual(["__proto__", "constructor"]);
});
