import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import {
  createRetryPrinter,
  printConnectionLines,
  printTunnelLines,
} from "../../../../agent/output/connection-events.ts";
import { describeListening } from "../../../../agent/local-server/restart-wait.ts";
import { FailedAttempts } from "../../../../agent/output/failed-attempts.ts";
import { printWebhooksLines } from "../../../../agent/output/webhooks.ts";
import { RetryableError } from "../../../../agent/service-api.ts";
import { retryWhileUnreachable } from "../../../../agent/vpn/retry-while-unreachable.ts";
import type { Forwarder } from "../../../../agent/webhooks/forwarder.ts";
import { HOUR_MS } from "../../../../shared/time.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: 0 }));
afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

/** Prints what happens to a connection. @returns the printed lines of a level. */
function printLines() {
  const connection = new EventEmitter();
  const lines: [level: string, text: string][] = [];
  printConnectionLines(connection, (level, text) => lines.push([level, text]));
  const getLines = (level: string) =>
    lines.filter(([one]) => one === level).map(([, text]) => text);
  return { connection, getLines };
}

/** The attempts of so many seconds fail, one each second. */
function failEachSecond(connection: EventEmitter, seconds: number): void {
  for (let at = 0; at < seconds; at += 1) {
    connection.emit("retrying", "refused", 1_000);
    vi.setSystemTime(Date.now() + 1_000);
  }
}

test("of the attempts that fail for the same reason, fewer are printed the longer it takes", () => {
  const { connection, getLines } = printLines();
  failEachSecond(connection, 8 * 3_600);
  expect(getLines("warn").slice(0, 4)).toEqual([
    "no connection: refused; next attempt in 1.0 s",
    "no connection: refused; next attempt in 1.0 s",
    "no connection: refused; 62 attempts failed, next attempt in 1.0 s",
    "no connection: refused; 182 attempts failed, next attempt in 1.0 s",
  ]);
  expect(getLines("warn")).toHaveLength(14);
  expect(getLines("warn").length + getLines("debug").length).toBe(8 * 3_600);
});

test.each(["ready", "reconnected"])("%s begins a new count of failed attempts", (event) => {
  const { connection, getLines } = printLines();
  failEachSecond(connection, 10);
  connection.emit(event);
  failEachSecond(connection, 10);
  expect(getLines("warn")).toEqual(Array(4).fill("no connection: refused; next attempt in 1.0 s"));
});

test("a local server that refuses connections, and accepts them again, is a line of the log", () => {
  const tunnel = new EventEmitter();
  const lines: string[] = [];
  printTunnelLines(tunnel, (level, text) => lines.push(`${level}: ${text}`), "command_line");
  for (const isListening of [false, true])
    tunnel.emit("localServer", isListening, describeListening(isListening, "localhost:3000"));
  expect(lines).toEqual([
    "info: localhost:3000 refuses connections; visitors wait up to 3 s for it",
    "info: localhost:3000 accepts connections again",
  ]);
});

test("the setup of a network's server prints as few of its failed attempts", async () => {
  const lines: string[] = [];
  const setUp = () =>
    Date.now() < 8 * HOUR_MS
      ? Promise.reject(new RetryableError("refused"))
      : Promise.resolve("done");
  const printRetry = createRetryPrinter((level, text) => level === "warn" && lines.push(text));
  const { signal } = new AbortController();
  const result = await retryWhileUnreachable(setUp, printRetry, signal, (ms) => {
    vi.setSystemTime(Date.now() + ms);
    return Promise.resolve();
  });
  expect(result).toBe("done");
  expect(lines).toHaveLength(14);
  expect(lines[2]).toMatch(/^no connection: refused; \d+ attempts failed, next attempt in /);
});

test("a webhook that nothing listens for is printed as rarely, and its delivery at once", () => {
  const output = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  const forwarder = new EventEmitter() as never as Forwarder;
  printWebhooksLines(forwarder, "http://localhost:3000", "warn");
  const attempt = { id: "1", receivedAt: "now", status: null, durationMs: 1, isUnsent: true };
  for (let at = 1; at <= 8 * 120; at += 1) {
    forwarder.emit("attempt", { ...attempt, attempt: at, outcome: "retrying", problem: "refused" });
    vi.setSystemTime(Date.now() + 30_000);
  }
  expect(output).toHaveBeenCalledTimes(14);
  forwarder.emit("attempt", { ...attempt, attempt: 961, outcome: "put_aside" });
  expect(output).toHaveBeenCalledTimes(15);
});

test("reasons that alternate are printed as rarely as one reason", () => {
  const attempts = new FailedAttempts();
  const printed = Array.from({ length: 100 }, (_, at) => attempts.add(at % 2 ? "a" : "b", at));
  expect(printed.filter(Boolean)).toHaveLength(4);
});
