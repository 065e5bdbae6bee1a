import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { printConnectionLines } from "../../../../agent/output/connection-events.ts";
import { FailedAttempts } from "../../../../agent/output/failed-attempts.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["Date"], now: 0 }));
afterEach(() => void vi.useRealTimers());

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

test("reasons that alternate are printed as rarely as one reason", () => {
  const attempts = new FailedAttempts();
  const printed = Array.from({ length: 100 }, (_, at) => attempts.add(at % 2 ? "a" : "b", at));
  expect(printed.filter(Boolean)).toHaveLength(4);
});
