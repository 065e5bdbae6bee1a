/** The relay's log, which strangers can make it write to. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLog } from "../../../relay/log.ts";
import { LOG_LIMIT } from "../../../shared/log.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("each message writes a burst of lines, then fifty a second, which count the others", () => {
  const lines: string[] = [];
  const stream = { on: () => undefined, write: (line: string) => lines.push(line) };
  const log = createLog(stream as never);
  for (let at = 0; at < LOG_LIMIT.burst + 10; at++) log.info("agent refused");
  log.info("agent connected");
  expect(lines).toHaveLength(LOG_LIMIT.burst + 1);
  vi.advanceTimersByTime(LOG_LIMIT.refillMs);
  log.info("agent refused", { reason: "unauthorized" });
  const message = "agent refused";
  expect(JSON.parse(lines.at(-1)!)).toMatchObject({
    message,
    reason: "unauthorized",
    unlogged: 10,
  });
});
