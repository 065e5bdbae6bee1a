/** docs/protocols/agent-protocol.md says what is true: its tables, its example of flow control, its bytes. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { CLOSE, shouldReconnect } from "../../protocol/wire/close-codes.ts";
import { SendWindows } from "../../protocol/wire/flow-control.ts";
import {
  FLAG,
  FRAME,
  FRAME_MAX_BYTES,
  FrameWriter,
  PING,
  PONG,
  RESET,
} from "../../protocol/wire/frames.ts";
import * as limits from "../../protocol/limits.ts";
import { ROOT } from "../../self-host/build/build.ts";

const text = await readFile(join(ROOT, "docs/protocols/agent-protocol.md"), "utf8");
/** Rows of tables, their cells trimmed. */
const rows = text
  .split("\n")
  .filter((line) => line.startsWith("|"))
  .map((line) => line.split("|").map((cell) => cell.trim()));
const hasRow = (...cells: string[]) =>
  rows.some((row) => cells.every((cell, i) => row[i + 1] === cell));

describe("the tables name", () => {
  test.each(Object.entries(FRAME))("the frame %s", (name, type) => {
    expect(hasRow(String(type), `\`${name}\``)).toBe(true);
  });
  test.each(Object.entries(FLAG))("the flag %s", (name, bit) => {
    expect(hasRow(String(bit), `\`${name}\``)).toBe(true);
  });
  test.each(Object.entries(RESET))("the reset %s", (name, code) => {
    expect(hasRow(String(code), `\`${name}\``)).toBe(true);
  });
  test.each(Object.entries(CLOSE))("the close code %s and whether to come back", (name, code) => {
    expect(hasRow(String(code), `\`${name}\``, shouldReconnect(code) ? "yes" : "no")).toBe(true);
  });
});

test("the heartbeat's texts and every bound are there", () => {
  expect(text).toContain(`\`${PING}\``);
  expect(text).toContain(`\`${PONG}\``);
  const bounds = [
    FRAME_MAX_BYTES,
    limits.FRAME_DATA_MAX_BYTES,
    limits.STREAM_RESERVE_BYTES,
    limits.CREDIT_GRANT_BYTES,
    limits.WEBSOCKET_MESSAGE_MAX_BYTES,
    limits.TUNNEL_TTL_MAX_SECONDS,
  ];
  for (const bound of bounds) expect(text).toContain(bound.toLocaleString("en-US"));
  for (const window of [limits.STREAM_WINDOW_BYTES, limits.CONNECTION_WINDOW_BYTES])
    expect(text).toContain(`: ${window}`);
  expect(text).toContain(`"heartbeatIntervalMs": ${limits.HEARTBEAT_INTERVAL_MS}`);
  expect(text).toContain(`"heartbeatTimeoutMs": ${limits.HEARTBEAT_TIMEOUT_MS}`);
});

test("the example of flow control counts right", () => {
  const sender = new SendWindows(limits.STREAM_WINDOW_BYTES, limits.CONNECTION_WINDOW_BYTES);
  const sent = Array.from({ length: 18 }, (_, i) => {
    const bytes = sender.available(i + 1);
    sender.recordSent(i + 1, bytes);
    return bytes;
  });
  expect(sent).toEqual([...Array<number>(16).fill(1_048_576), 278_528, 16_384]);
  sender.addCredit(1, 1_000);
  expect(sender.available(1)).toBe(1_000);
  expect(text).toContain("278,528");
});

describe("the example's bytes are those of", () => {
  function dump(write: (writer: FrameWriter) => void): string {
    const writer = new FrameWriter();
    write(writer);
    const bytes = [...writer.take()];
    const lines: string[] = [];
    for (let at = 0; at < bytes.length; at += 16) {
      const part = bytes.slice(at, at + 16);
      const hex = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
      const shown = part.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "."));
      lines.push(`${hex.padEnd(48)} ${shown.join("")}`);
    }
    return `\`\`\`text\n${lines.join("\n")}\n\`\`\``;
  }

  test.each<[string, (writer: FrameWriter) => void]>([
    [
      "a hello",
      (writer) =>
        writer.writeJson(FRAME.hello, 0, 0, {
          protocol: 1,
          agent: "my-agent/1.0",
          capabilities: ["websocket"],
          streamWindow: limits.STREAM_WINDOW_BYTES,
          connectionWindow: limits.CONNECTION_WINDOW_BYTES,
        }),
    ],
    [
      "a request",
      (writer) =>
        writer.writeJson(FRAME.request, FLAG.end, 7, ["GET", "/?q=1", "host", "shop.example.com"]),
    ],
    [
      "an answer",
      (writer) => {
        writer.writeJson(FRAME.response, 0, 7, [200, "content-type", "text/plain"]);
        writer.writeText(FRAME.data, FLAG.end, 7, "hello");
      },
    ],
  ])("%s", (_, write) => {
    expect(text).toContain(dump(write));
  });
});
