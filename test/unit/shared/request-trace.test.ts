import { afterEach, expect, test, vi } from "vitest";
import { LOG_LIMIT } from "../../../shared/log.ts";
import { RequestTrace } from "../../../shared/tracing/request-trace.ts";

afterEach(() => void vi.restoreAllMocks());

function listen(): Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  vi.spyOn(console, "info").mockImplementation((line: string) => {
    lines.push(JSON.parse(line) as Record<string, unknown>);
  });
  return lines;
}

const traced = (status: number) => ({ requestId: "id", status, durationMs: 1.26 });

test.each([
  ["off", 500, 0],
  ["errors", 499, 0],
  ["errors", 500, 1],
  ["all", 200, 1],
  [undefined, 500, 0],
])("with the mode %s, a response with %i causes %i lines", (mode, status, count) => {
  const lines = listen();
  new RequestTrace("edge", mode).record(traced(status), 0);
  expect(lines).toHaveLength(count);
});

test("logs at most the lines of its limit, and says how many are missing", () => {
  const lines = listen();
  const trace = new RequestTrace("edge", "all");
  for (let at = 0; at < LOG_LIMIT.burst + 10; at++) trace.record(traced(200), 0);
  expect(lines).toHaveLength(LOG_LIMIT.burst);
  trace.record(traced(200), LOG_LIMIT.refillMs);
  expect(lines.at(-1)).toEqual({
    level: "info",
    event: "request_traced",
    part: "edge",
    requestId: "id",
    status: 200,
    durationMs: 1.3,
    unlogged: 10,
  });
});
