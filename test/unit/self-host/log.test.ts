import { Writable } from "node:stream";
import { expect, test } from "vitest";
import { createLog } from "../../../self-host/log.ts";

/** What the log writes, at a terminal or not. */
function createStream(isTTY: boolean) {
  const lines: string[] = [];
  const stream = { isTTY, on: () => undefined, write: (line: string) => lines.push(line) };
  return { lines, log: createLog(stream as never) };
}

test("a line of another process has one time at a terminal, and its own as JSON", () => {
  const time = "2026-11-26T13:14:44.000Z";
  const line = JSON.stringify({ time, level: "info", message: "relay started", port: 40_000 });
  const [terminal, file] = [createStream(true), createStream(false)];
  for (const { log } of [terminal, file]) log.forward("relay", "info", line);
  expect(terminal.lines.join("")).toMatch(
    /^\d\d:\d\d:\d\d relay started source=relay port=40000\n$/,
  );
  expect(JSON.parse(file.lines.join(""))).toMatchObject({ time, message: "relay started" });
});

test("fields of the Worker replace neither its event nor its level", () => {
  const { lines, log } = createStream(false);
  const fields = { message: "the ticket is not valid" };
  log.forward(
    "worker",
    "info",
    JSON.stringify({ level: "warn", event: "agent_refused", ...fields }),
  );
  expect(JSON.parse(lines.join(""))).toMatchObject({ level: "warn", message: "agent_refused" });
});

test("at a terminal, no text can control it", () => {
  const { lines, log } = createStream(true);
  const hostile = "\u001b]0;title\u0007\u009b2J\u202e";
  log.forward("worker", "info", JSON.stringify({ event: "request", path: `/${hostile}` }));
  log.forward("worker", "warn", `failed: ${hostile}`);
  log.warn("a mail was refused", { answer: `550 ${hostile}` });
  expect(lines).toHaveLength(3);
  expect(lines.join("")).not.toMatch(/(?!\n)\p{C}/u);
});

test("a reader that has stopped costs a bounded amount of memory, and is told later how many lines are missing", () => {
  const lines: string[] = [];
  let resume = (): void => undefined;
  const stream = new Writable({
    decodeStrings: false,
    write(line: string, _encoding, done) {
      lines.push(line);
      resume = done;
    },
  });
  const log = createLog(stream as never);
  const text = "x".repeat(1024 * 1024);
  for (let sent = 1; sent <= 20; sent += 1) log.info("request", { text });
  expect(stream.writableLength).toBeLessThan(6 * 1024 * 1024);
  while (stream.writableLength > 0) resume();
  const { length } = lines;
  log.info("listening");
  resume();
  expect(lines.slice(length).map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { level: "warn", lines: 20 - length },
    { message: "listening" },
  ]);
});
