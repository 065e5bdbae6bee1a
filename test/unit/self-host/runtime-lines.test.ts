/** The lines that workerd writes, on their way to the server's log. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLineForwarder } from "../../../self-host/workerd/workerd.ts";
import { LOG_LIMIT } from "../../../shared/log.ts";

let lines: string[];
let forward: ReturnType<typeof createLineForwarder>;
beforeEach(() => {
  vi.useFakeTimers();
  lines = [];
  forward = createLineForwarder({ forward: (_source, _level, line) => lines.push(line) });
});
afterEach(() => {
  vi.useRealTimers();
});

test("those of the runtime are limited, and the next one says how many are missing", () => {
  for (let at = 0; at < LOG_LIMIT.burst + 10; at++) forward("Uncaught exception", "stderr");
  expect(lines).toHaveLength(LOG_LIMIT.burst);
  vi.advanceTimersByTime(LOG_LIMIT.refillMs);
  forward("Uncaught exception", "stderr");
  expect(lines.at(-1)).toBe("Uncaught exception (10 lines before it were not logged)");
});

test("entries of the Worker are forwarded, which limits them itself", () => {
  const entry = JSON.stringify({ level: "info", event: "request" });
  for (let at = 0; at < 2 * LOG_LIMIT.burst; at++) forward(entry, "stdout");
  expect(lines).toHaveLength(2 * LOG_LIMIT.burst);
});

test("stack traces of the runtime's own code are dropped", () => {
  forward("stack: 0x1 0x2", "stderr");
  expect(lines).toEqual([]);
});
