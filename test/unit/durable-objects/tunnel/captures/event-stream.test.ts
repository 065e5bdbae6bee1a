/** Server-sent events, as they are captured while their stream passes through. */
import { expect, test } from "vitest";
import { EventStreamParser } from "../../../../../durable-objects/tunnel/captures/event-stream.ts";
import {
  CaptureMemory,
  PARSED_EVENTS,
} from "../../../../../durable-objects/tunnel/captures/memory.ts";
import { toUtf8 } from "../../../../../shared/bytes.ts";

const STREAM =
  "retry: 5\n\ndata: a\r\ndata:b\r\n\r\n:only a comment\n\n\n\r\n\revent: x\rid\rdata\r\rdata: é, cut off";

const createParser = () => new EventStreamParser(new CaptureMemory(10_000));

test("are parsed the same however their bytes are split into chunks", () => {
  const bytes = toUtf8(STREAM);
  const expected = [
    { atMs: 0, size: 17, event: "message", id: null, data: "a\nb" },
    { atMs: 0, size: 17, event: "x", id: "", data: "" },
  ];
  for (let size = 1; size <= bytes.length; size += 1) {
    const parser = createParser();
    const parsed = [];
    for (let at = 0; at < bytes.length; at += size) {
      parsed.push(...parser.push(bytes.subarray(at, at + size), 0).parsed);
    }
    expect(parsed).toEqual(expected);
  }
});

test("that never end use bounded memory, and their size is counted", () => {
  const parser = createParser();
  const endless = toUtf8("data: x".repeat(10_000));
  for (let i = 0; i < 10; i += 1)
    expect(parser.push(endless, 0)).toEqual({ parsed: [], unparsed: 0 });
  const [event] = parser.push(toUtf8("\n\n"), 0).parsed;
  expect(event!.size).toBe(10 * endless.length + 1);
  expect(event!.data.length).toBeLessThanOrEqual(1024);
});

test("are only counted when a tunnel has too many of them, and parsed again later", () => {
  let nowMs = 0;
  const memory = new CaptureMemory(10_000, () => nowMs);
  const streams = Array.from({ length: 2 }, () => new EventStreamParser(memory));
  const events = toUtf8(":not an event\n\ndata: a\n\n".repeat(PARSED_EVENTS.burst / 4));
  const push = (): [parsed: number, unparsed: number] => {
    const ended = streams.map((stream) => stream.push(events, nowMs));
    return [
      ended.flatMap(({ parsed }) => parsed).length,
      ended.reduce((sum, { unparsed }) => sum + unparsed, 0),
    ];
  };
  expect(push()).toEqual([PARSED_EVENTS.burst / 2, 0]);
  expect(push()).toEqual([0, PARSED_EVENTS.burst / 2]);
  nowMs += PARSED_EVENTS.burst * PARSED_EVENTS.refillMs;
  expect(push()).toEqual([PARSED_EVENTS.burst / 2, 0]);
});

test("of more streams than there is memory for are only counted, until another stream has ended", () => {
  const memory = new CaptureMemory(10_000, () => 0);
  const streams = Array.from({ length: 3 }, () => new EventStreamParser(memory));
  const push = () => streams.map((stream) => stream.push(toUtf8("data: a\n\n"), 0).parsed.length);
  expect(push()).toEqual([1, 1, 0]);
  // It is not written with the next captures.
  expect([memory.heldBytes, memory.bodyBytes]).toEqual([8_192, 0]);
  streams.shift()!.release();
  expect(push()).toEqual([1, 1]);
  for (const stream of streams) stream.release();
  expect(memory.heldBytes).toBe(0);
});
