import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createEventPrinter, createLinePrinter } from "../../../../agent/output/output.ts";

const { isTTY } = process.stdout;
let printed: string;
beforeEach(() => {
  printed = "";
  vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2026-03-01T12:00:00.25Z") });
  vi.spyOn(process.stdout, "write").mockImplementation((text) => (printed += String(text)) !== "");
});
afterEach(() => {
  process.stdout.isTTY = isTTY;
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test.each([
  ["a log begin with the time", false, "2026-03-01T12:00:00.250Z [web] online\n"],
  ["a terminal do not", true, "[web] online\n"],
])("lines of %s", (_, isTerminal, expected) => {
  process.stdout.isTTY = isTerminal;
  createLinePrinter("info", "web")("info", "online");
  expect(printed).toBe(expected);
});

test("events for programs have the time, in every kind of output", () => {
  process.stdout.isTTY = true;
  createEventPrinter("web")({ event: "reconnected" });
  const time = "2026-03-01T12:00:00.250Z";
  expect(JSON.parse(printed)).toEqual({ event: "reconnected", time, tunnel: "web" });
});
