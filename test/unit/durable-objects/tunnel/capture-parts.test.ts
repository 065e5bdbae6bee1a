import { serialize } from "node:v8";
import { afterEach, describe, expect, test, vi } from "vitest";
import {
  Alarm,
  computeNextAlarm,
  ALARM_RETRY_MAX_MS,
  ALARM_RETRY_MIN_MS,
} from "../../../../durable-objects/tunnel/alarm.ts";
import {
  BodyRecorder,
  BODY_CAPTURE_MAX_BYTES,
} from "../../../../durable-objects/tunnel/captures/body.ts";
import {
  CaptureStore,
  CAPTURE_PAGE_MAX_BYTES,
} from "../../../../durable-objects/tunnel/captures/capture-store.ts";
import { EventStreamParser } from "../../../../durable-objects/tunnel/captures/event-stream.ts";
import { CaptureMemory } from "../../../../durable-objects/tunnel/captures/memory.ts";
import { mergeNewestFirst } from "../../../../durable-objects/tunnel/captures/merge.ts";
import {
  readDetail,
  pack,
  parseRecords,
  type FinalizedCapture,
} from "../../../../durable-objects/tunnel/captures/page.ts";
import type {
  CaptureRecord,
  CapturedBody,
} from "../../../../durable-objects/tunnel/captures/record.ts";
import { Recording } from "../../../../durable-objects/tunnel/captures/recording.ts";
import { redactHeaders } from "../../../../durable-objects/tunnel/captures/redaction.ts";
import { toCaptureIdPrefix } from "../../../../protocol/capture-id.ts";
import { CAPTURE_MEMORY_MAX_BYTES } from "../../../../durable-objects/tunnel/captures/captures.ts";
import { CaptureSettings } from "../../../../protocol/schemas/inspector/captures.ts";
import { seeded } from "../../../harness/random.ts";

const recordOf = (id: string) => ({ id }) as CaptureRecord;

describe("captures of overlapping pages", () => {
  test("are listed newest first, each once, and no page is read before it is needed", () => {
    const random = seeded(7);
    const ids = Array.from({ length: 400 }, (_, i) => String(i).padStart(4, "0"));
    const pages: CaptureRecord[][] = [];
    const rows: CaptureRecord[][] = [];
    // Written in the order in which they ended: some time after they began.
    const ended = ids
      .map((id) => ({ id, endedAt: Number(id) + random.below(20) }))
      .sort((a, b) => a.endedAt - b.endedAt)
      .map(({ id }) => id);
    for (let at = 0; at < ended.length; at += 10) {
      const some = ended.slice(at, at + 10).toSorted();
      rows.push([recordOf(some.shift()!)]);
      pages.push(some.map(recordOf));
    }
    const byNewest = (a: CaptureRecord[], b: CaptureRecord[]) =>
      a.at(-1)!.id < b.at(-1)!.id ? 1 : -1;
    let read = 0;
    function* reading(source: CaptureRecord[][]) {
      for (const page of source.toSorted(byNewest)) {
        read += 1;
        yield page;
      }
    }
    const listed = mergeNewestFirst(reading(pages), reading(rows));
    const first = Array.from({ length: 20 }, () => (listed.next().value as CaptureRecord).id);
    expect(read).toBeLessThan(30);
    expect([...first, ...[...listed].map(({ id }) => id)]).toEqual(ids.toReversed());
  });

  test("of nothing are none", () => {
    expect([...mergeNewestFirst([], [])]).toEqual([]);
  });
});

describe("a page", () => {
  const bodyOf = (text: string, isCut = false): CapturedBody => {
    return { bytes: new TextEncoder().encode(text), isCut };
  };
  const sealedOf = (id: string, request: CapturedBody, response: CapturedBody): FinalizedCapture => ({
    id,
    record: JSON.stringify({ id }),
    lines: JSON.stringify({ request: ["x-id", id], response: [] }),
    bodies: { request, response },
    heldBytes: 0,
  });

  test("gives back of each what it was given, but for bodies that are stored elsewhere", () => {
    const large = { bytes: new Uint8Array(BODY_CAPTURE_MAX_BYTES), isCut: true };
    const { page, details } = pack(
      [
        sealedOf("a", bodyOf("one"), bodyOf("")),
        sealedOf("b", large, bodyOf("two", true)),
        sealedOf("c", bodyOf(""), bodyOf("three")),
      ],
      ["elsewhere"],
    );
    expect(parseRecords(page)).toEqual([{ id: "a" }, { id: "b" }, { id: "c" }]);
    const text = (index: number) => {
      const { lines, bodies } = readDetail(details, index);
      const decode = (bytes: Uint8Array | null) => bytes && new TextDecoder().decode(bytes);
      return [lines.request[1], decode(bodies.request.bytes), decode(bodies.response.bytes)];
    };
    expect([text(0), text(1), text(2)]).toEqual([
      ["a", "one", ""],
      ["b", null, "two"],
      ["c", "", "three"],
    ]);
    expect(readDetail(details, 1).bodies).toMatchObject({
      request: { isCut: true },
      response: { isCut: true },
    });
  });
});

describe("what captures hold in memory", () => {
  const piecesOf = (bytes: Uint8Array, size: number) =>
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );

  test("of a body is one buffer whose room is counted, however small the pieces are", () => {
    const whole = new Uint8Array(100_000).map((_, i) => i);
    for (const size of [1, 7, 99_999, whole.length]) {
      const memory = new CaptureMemory(CAPTURE_MEMORY_MAX_BYTES);
      const body = new BodyRecorder();
      for (const piece of piecesOf(whole, size)) body.add(piece, memory);
      body.end();
      const { bytes, isCut } = body.toCapturedBody();
      expect([isCut, bytes.buffer.byteLength]).toEqual([false, whole.length]);
      expect(Buffer.compare(bytes, whole)).toBe(0);
      expect(memory.heldBytes).toBe(body.heldBytes);
      expect(body.heldBytes).toBeGreaterThanOrEqual(whole.length);
      expect(body.heldBytes).toBeLessThan(2 * whole.length);
    }
  });

  test("of a body ends where the memory does, and what was read before stays as it was", () => {
    const memory = new CaptureMemory(10);
    const body = new BodyRecorder();
    const reads: string[] = [];
    for (const piece of ["abc", "def", "ghi", "jkl", "m"]) {
      body.add(new TextEncoder().encode(piece), memory);
      reads.push(new TextDecoder().decode(body.toCapturedBody().bytes));
    }
    body.end();
    expect(reads).toEqual(["abc", "abcdef", "abcdefghi", "abcdefghij", "abcdefghij"]);
    expect([body.size, body.toCapturedBody().isCut, memory.heldBytes]).toEqual([13, true, 10]);
  });

  test("is all given back, also of a plain request that was answered as if it were a WebSocket", () => {
    const memory = new CaptureMemory(CAPTURE_MEMORY_MAX_BYTES);
    const ignored = () => undefined;
    const recorder = { memory, changed: ignored, lasts: ignored, over: ignored };
    const kept = { bodies: true, redact: new Set<string>() };
    const visit = { parts: ["POST", "/"], hasBody: true, clientIp: "", replayOf: null };
    const recording = new Recording(recorder, kept, "a", 0, { ...visit, isSocket: false });
    recording.addRequestBytes(new Uint8Array(1_000));
    recording.startResponse(101, []);
    recording.complete();
    expect(recording.finalize().heldBytes).toBe(memory.heldBytes);
    expect(recording.bodies.request.bytes).toHaveLength(1_000);
  });
});

describe("pages of captures", () => {
  test("are smaller than what the platform stores, whatever their headers hold", () => {
    const stored = new Map<string, unknown>();
    const storage = {
      put: (entries: Record<string, unknown>) => {
        for (const [key, value] of Object.entries(entries)) stored.set(key, value);
        return Promise.resolve();
      },
    };
    const nothing = { bytes: new Uint8Array(), isCut: false };
    const long = "\u4e16".repeat(CAPTURE_PAGE_MAX_BYTES - 1_000);
    const sealed = [...long.slice(0, 4)].map((_, i) => ({
      id: toCaptureIdPrefix(i + 1),
      record: JSON.stringify({ i }),
      lines: JSON.stringify({ request: ["x-long", long], response: [] }),
      bodies: { request: nothing, response: nothing },
      heldBytes: 0,
    }));
    new CaptureStore(storage as unknown as DurableObjectStorage).write(sealed, []);
    const sizes = [...stored.values()].map((value) => serialize(value).length);
    expect(sizes).toHaveLength(2 * sealed.length);
    expect(Math.max(...sizes)).toBeLessThan(2 * 1024 * 1024);
  });
});

describe("server-sent events", () => {
  const stream =
    "retry: 5\n\ndata: a\r\ndata:b\r\n\r\n:only a comment\n\nevent: x\rid\rdata\r\rdata: é, cut off";

  test("are the same however their bytes are cut into pieces", () => {
    const bytes = new TextEncoder().encode(stream);
    const expected = [
      { atMs: 0, size: 17, event: "message", id: null, data: "a\nb" },
      { atMs: 0, size: 17, event: "x", id: "", data: "" },
    ];
    for (let size = 1; size <= bytes.length; size += 1) {
      const events = new EventStreamParser();
      const seen = [];
      for (let at = 0; at < bytes.length; at += size) {
        seen.push(...events.push(bytes.subarray(at, at + size), 0));
      }
      expect(seen).toEqual(expected);
    }
  });

  test("that never end hold a bounded memory, and their size is known", () => {
    const events = new EventStreamParser();
    const endless = new TextEncoder().encode("data: x".repeat(10_000));
    for (let i = 0; i < 10; i += 1) expect(events.push(endless, 0)).toEqual([]);
    const [event] = events.push(new TextEncoder().encode("\n\n"), 0);
    expect(event!.size).toBe(10 * endless.length + 1);
    expect(event!.data.length).toBeLessThanOrEqual(1024);
  });
});

describe("redaction", () => {
  test("replaces values by name, in any spelling, and leaves what it was given", () => {
    const lines = ["Cookie", "a=1", "x", "y", "COOKIE", "b=2"];
    const kept = redactHeaders(lines, new Set(["cookie"]));
    expect(kept).toEqual(["Cookie", "[redacted]", "x", "y", "COOKIE", "[redacted]"]);
    expect(lines[1]).toBe("a=1");
  });

  test("is of names in lower case, each once", () => {
    const { redactHeaders } = CaptureSettings.parse({ redactHeaders: ["X-A", "x-a", "B"] });
    expect(redactHeaders).toEqual(["x-a", "b"]);
  });
});

describe("the alarm that an object's parts share", () => {
  afterEach(() => vi.useRealTimers());

  test("is set to what comes first", () => {
    expect(computeNextAlarm(null, 5)).toBe(5);
    expect(computeNextAlarm(9, 5)).toBe(5);
    expect(computeNextAlarm(5, 9)).toBeNull();
  });

  /** @param setToMs from an earlier life of the object. */
  function alarmOf(setToMs: number | null) {
    const set: number[] = [];
    const storage = {
      getAlarm: () => Promise.resolve(setToMs),
      setAlarm: (atMs: number | Date) => Promise.resolve(void set.push(Number(atMs))),
    };
    return { alarm: new Alarm(storage), set };
  }

  test("never goes off later because somebody waits for longer", async () => {
    const soon = Date.now() + 60_000;
    const { alarm, set } = alarmOf(soon);
    alarm.scheduleBy(soon + 5_000, "unconfirmed");
    alarm.scheduleBy(soon + 3_000, "unconfirmed");
    await Promise.resolve();
    expect(set).toEqual([]);
    alarm.scheduleBy(soon - 1_000, "unconfirmed");
    expect(set).toEqual([soon - 1_000]);
    alarm.scheduleBy(soon, "unconfirmed");
    alarm.markFired();
    alarm.scheduleBy(soon + 1, "unconfirmed");
    expect(set).toEqual([soon - 1_000, soon + 1]);
  });

  test("goes off soon again for what failed, later each time, whoever else waits for longer", async () => {
    vi.useFakeTimers({ toFake: ["Date"] });
    vi.spyOn(console, "error").mockReturnValue();
    const { alarm, set } = alarmOf(null);
    const week = 7 * 24 * 3600_000;
    const goesOff = async (due: () => Promise<void>) => {
      set.length = 0;
      alarm.markFired();
      await Promise.all([
        alarm.attempt(() => alarm.scheduleBy(Date.now() + week, "unconfirmed")),
        alarm.attempt(due),
      ]);
      return set.at(-1)! - Date.now();
    };
    const fails = () => Promise.reject(new Error("no database"));
    const waits: number[] = [];
    for (let i = 0; i < 6; i += 1) waits.push(await goesOff(fails));
    expect(waits).toEqual(waits.toSorted((a, b) => a - b));
    expect([waits[0], waits[5]]).toEqual([ALARM_RETRY_MIN_MS, ALARM_RETRY_MAX_MS]);
    expect(await goesOff(() => Promise.resolve())).toBe(week);
    expect(await goesOff(fails)).toBe(ALARM_RETRY_MIN_MS);
  });

  test("is set at once where something is due", () => {
    const { alarm, set } = alarmOf(null);
    const now = Date.now();
    alarm.scheduleBy(now, "confirmed");
    expect(set).toEqual([now]);
  });
});
