import { serialize } from "node:v8";
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import {
  BodyRecorder,
  BODY_CAPTURE_MAX_BYTES,
} from "../../../../durable-objects/tunnel/captures/body.ts";
import {
  CaptureStore,
  CAPTURE_PAGE_MAX_BYTES,
} from "../../../../durable-objects/tunnel/captures/capture-store.ts";
import { CaptureMemory, LARGE_HEADS } from "../../../../durable-objects/tunnel/captures/memory.ts";
import {
  mergeNewestFirst,
  type UnreadPage,
} from "../../../../durable-objects/tunnel/captures/reading/merge.ts";
import {
  ParsedPage,
  packPage,
  parseRecords,
  type FinalizedCapture,
} from "../../../../durable-objects/tunnel/captures/page.ts";
import {
  toDetail,
  type CaptureRecord,
  type CapturedBody,
} from "../../../../durable-objects/tunnel/captures/record.ts";
import { CaptureLookup } from "../../../../durable-objects/tunnel/captures/reading/capture-lookup.ts";
import { ReadQueue } from "../../../../durable-objects/tunnel/captures/reading/read-pace.ts";
import { Recording } from "../../../../durable-objects/tunnel/captures/recording.ts";
import { buildReplay } from "../../../../durable-objects/tunnel/captures/replay.ts";
import {
  fillGaps,
  mergeBreakdowns,
  mergeNewest,
} from "../../../../durable-objects/tunnel/shards/merge-captures.ts";
import { redactHeaders } from "../../../../durable-objects/tunnel/captures/redaction.ts";
import { toCaptureIdPrefix } from "../../../../protocol/captures/id.ts";
import { CAPTURE_MEMORY_MAX_BYTES } from "../../../../durable-objects/tunnel/captures/captures.ts";
import { CaptureSettings } from "../../../../protocol/schemas/inspector/captures.ts";

const toRecord = (id: string) => ({ id }) as CaptureRecord;
const byNewest = (a: CaptureRecord[], b: CaptureRecord[]) => (a.at(-1)!.id < b.at(-1)!.id ? 1 : -1);

async function* toSource(pages: UnreadPage[]): AsyncGenerator<UnreadPage, void> {
  for (const page of pages) yield await Promise.resolve(page);
}

describe("captures of overlapping pages", () => {
  test("are listed newest first, each once, and pages are read only when needed", async () => {
    const ids = Array.from({ length: 400 }, (_, i) => String(i).padStart(4, "0"));
    const durations = fc.array(fc.nat(19), { minLength: ids.length, maxLength: ids.length });
    await fc.assert(
      fc.asyncProperty(durations, async (durationOf) => {
        const pages: CaptureRecord[][] = [];
        const rows: CaptureRecord[][] = [];
        // Written in the order in which they ended, which is not the order in which they began.
        const ended = ids
          .map((id, i) => ({ id, endedAt: i + durationOf[i]! }))
          .sort((a, b) => a.endedAt - b.endedAt)
          .map(({ id }) => id);
        for (let at = 0; at < ended.length; at += 10) {
          const batch = ended.slice(at, at + 10).toSorted();
          rows.push([toRecord(batch.shift()!)]);
          pages.push(batch.map(toRecord));
        }
        let read = 0;
        const toUnread = (page: CaptureRecord[]) => ({
          newestId: page.at(-1)!.id,
          read() {
            read += 1;
            return page;
          },
        });
        const sources = [pages, rows].map((source) =>
          toSource(source.toSorted(byNewest).map(toUnread)),
        );
        const listed: string[] = [];
        for await (const { id } of mergeNewestFirst(sources)) {
          if (listed.push(id) === 20) expect(read).toBeLessThan(30);
        }
        expect(listed).toEqual(ids.toReversed());
      }),
      { seed: 7, numRuns: 20 },
    );
  });

  test("list nothing when there are none", async () => {
    expect((await mergeNewestFirst([toSource([]), toSource([])]).next()).done).toBe(true);
  });
});

describe("a page", () => {
  const toBody = (text: string, isCut = false): CapturedBody => {
    return { bytes: new TextEncoder().encode(text), isCut };
  };
  const createCapture = (
    id: string,
    request: CapturedBody,
    response: CapturedBody,
  ): FinalizedCapture => ({
    id,
    record: JSON.stringify({ id }),
    lines: JSON.stringify({ request: ["x-id", id], response: [] }),
    bodies: { request, response },
    bodyBytes: 0,
    headBytes: 0,
  });

  test("returns each capture unchanged, except for bodies that are stored separately", () => {
    const large = { bytes: new Uint8Array(BODY_CAPTURE_MAX_BYTES), isCut: true };
    const { page, details } = packPage(
      [
        createCapture("a", toBody("one"), toBody("")),
        createCapture("b", large, toBody("two", true)),
        createCapture("c", toBody(""), toBody("three")),
      ],
      ["body-key"],
    );
    expect(parseRecords(page)).toEqual([{ id: "a" }, { id: "b" }, { id: "c" }]);
    const parsed = new ParsedPage(page, details);
    const text = (id: string) => {
      const { lines, bodies } = parsed.find(id)!.detail;
      const decode = (bytes: Uint8Array | null) => bytes && new TextDecoder().decode(bytes);
      return [lines.request[1], decode(bodies.request.bytes), decode(bodies.response.bytes)];
    };
    expect([text("a"), text("b"), text("c")]).toEqual([
      ["a", "one", ""],
      ["b", null, "two"],
      ["c", "", "three"],
    ]);
    expect(parsed.find("b")!.detail.bodies).toMatchObject({
      request: { isCut: true },
      response: { isCut: true },
    });
    expect(parsed.find("d")).toBeUndefined();
  });
});

test("captures of overlapping pages are read together with one read of each page", () => {
  const body = { bytes: new Uint8Array(), isCut: false };
  const ids = Array.from({ length: 100 }, (_, i) => `${toCaptureIdPrefix(i + 1)}7000`);
  const stored = new Map<string, unknown>();
  const storage = {
    put: (values: Record<string, unknown>) => {
      for (const [key, value] of Object.entries(values)) stored.set(key, value);
      return Promise.resolve();
    },
  };
  const store = new CaptureStore(storage as unknown as DurableObjectStorage);
  // The requests of a page began in turns with those of the next one.
  for (const parity of [0, 1]) {
    const captures = ids
      .filter((_, i) => i % 2 === parity)
      .map((id) => ({
        id,
        record: JSON.stringify({ id }),
        lines: "{}",
        bodies: { request: body, response: body },
        bodyBytes: 0,
        headBytes: 0,
      }));
    store.write(captures, []);
  }
  const list = vi.fn(({ start, end }: { start: string; end: string }) =>
    [...stored].filter(([key]) => key >= start && key < end).sort(),
  );
  const kv = { get: (key: string) => stored.get(key), list } as unknown as SyncKvStorage;
  const lookup = new CaptureLookup(kv, new ReadQueue());
  expect(ids.toReversed().map((id) => lookup.find(id)?.record.id)).toEqual(ids.toReversed());
  expect(lookup.find(`${toCaptureIdPrefix(50)}7001`)).toBeUndefined();
  expect(list).toHaveBeenCalledTimes(3);
});

test("the newest captures of several objects are as many as were asked for", () => {
  const lists = [
    [{ id: "4" }, { id: "1" }],
    [{ id: "3" }, { id: "2" }],
  ];
  expect(mergeNewest(lists, 3).map(({ id }) => id)).toEqual(["4", "3", "2"]);
});

test("a breakdown is complete only if that of each object is", () => {
  const empty = { requests: 0, statuses: {}, errors: {}, latency: [], paths: [] };
  const merge = (...complete: boolean[]) =>
    mergeBreakdowns(complete.map((isComplete) => ({ ...empty, isComplete }))).isComplete;
  expect([merge(true, true), merge(true, false), merge(false, true)]).toEqual([true, false, false]);
});

test("what several objects have is one list, up to where it is not known of one of them", () => {
  const list = ["a", null, "c", null, null, "f"];
  expect(
    fillGaps(list, [
      [null, "d", null],
      ["b", null, null],
    ]),
  ).toEqual(["a", "b", "c", "d", null, "f"]);
  expect(fillGaps(list, [[null], ["b", "d", null]])).toEqual(["a", "b", "c", "d"]);
  expect(fillGaps(list, [])).toEqual(list);
});

function startRecording(memory: CaptureMemory, head: { parts: string[]; chars: number }) {
  const ignore = () => undefined;
  const recorder = { memory, onChanged: ignore, onLongLived: ignore, onEnded: ignore };
  const options = { bodies: true, redact: new Set<string>() };
  const request = { ...head, hasBody: true, clientIp: "", replayOf: null, isWebSocket: false };
  return new Recording(recorder, options, { id: toCaptureIdPrefix(1), atMs: 0 }, request);
}

describe("the memory of captures", () => {
  const splitIntoChunks = (bytes: Uint8Array, size: number) =>
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
      bytes.subarray(i * size, (i + 1) * size),
    );

  test("holds a body in one buffer, which is fully counted however small the chunks are", () => {
    const whole = new Uint8Array(100_000).map((_, i) => i);
    for (const size of [1, 7, 99_999, whole.length]) {
      const memory = new CaptureMemory(CAPTURE_MEMORY_MAX_BYTES);
      const body = new BodyRecorder();
      for (const chunk of splitIntoChunks(whole, size)) body.add(chunk, memory);
      body.end();
      const { bytes, isCut } = body.toCapturedBody();
      expect([isCut, bytes.buffer.byteLength]).toEqual([false, whole.length]);
      expect(Buffer.compare(bytes, whole)).toBe(0);
      expect(memory.heldBytes).toBe(body.heldBytes);
      expect(body.heldBytes).toBeGreaterThanOrEqual(whole.length);
      expect(body.heldBytes).toBeLessThan(2 * whole.length);
    }
  });

  test("bounds a body, and what was read of it before does not change", () => {
    const memory = new CaptureMemory(10);
    const body = new BodyRecorder();
    const reads: string[] = [];
    for (const chunk of ["abc", "def", "ghi", "jkl", "m"]) {
      body.add(new TextEncoder().encode(chunk), memory);
      reads.push(new TextDecoder().decode(body.toCapturedBody().bytes));
    }
    body.end();
    expect(reads).toEqual(["abc", "abcdef", "abcdefghi", "abcdefghij", "abcdefghij"]);
    expect([body.size, body.toCapturedBody().isCut, memory.heldBytes]).toEqual([13, true, 10]);
  });

  test("holds heads too: without room for one, its headers are left out", () => {
    const many = Array.from({ length: 500 }, (_, i) => `${i}`);
    const memory = new CaptureMemory(30_000);
    const record = () => {
      const parts = ["GET", "/kept?a", ...many];
      const recording = startRecording(memory, { parts, chars: 2_000 });
      recording.startResponse(200, many, 2_000);
      const { isRequestHeadCut, isResponseHeadCut } = recording.record;
      return { ...recording.lines, cut: [isRequestHeadCut, isResponseHeadCut] };
    };
    const first = { request: many, response: [], cut: [undefined, true] };
    expect([record(), memory.heldBytes]).toEqual([first, 18_064]);
    const next = { request: [], response: [], cut: [true, true] };
    expect([record(), memory.heldBytes]).toEqual([next, 18_064]);
    expect(
      startRecording(memory, { parts: ["GET", "/kept?a", ...many], chars: 2_000 }).record.path,
    ).toBe("/kept");
  });

  test("of more large heads than are stored, only the beginning of the target is kept", () => {
    let nowMs = 0;
    const memory = new CaptureMemory(CAPTURE_MEMORY_MAX_BYTES, () => nowMs);
    const target = `/${"p".repeat(20_000)}?q`;
    const record = (path: string) => {
      const parts = ["GET", path, "a", "b"];
      const recording = startRecording(memory, { parts, chars: path.length + 5 });
      const { bodyBytes, headBytes } = recording.finalize();
      memory.release(bodyBytes);
      memory.releaseHead(headBytes);
      return recording;
    };
    for (let n = 0; n < LARGE_HEADS.burst; n += 1) {
      expect(record(target).record).toMatchObject({ path: target.slice(0, -2), query: "q" });
    }
    const cut = record(target);
    expect(cut.record).toMatchObject({
      path: target.slice(0, 256),
      isRequestHeadCut: true,
    });
    expect([cut.lines.request, memory.heldBytes]).toEqual([[], 0]);
    expect(record("/short").lines.request).toEqual(["a", "b"]);
    nowMs += LARGE_HEADS.refillMs;
    expect(record(target).record.isRequestHeadCut).toBeUndefined();
    expect(record(target).record.isRequestHeadCut).toBe(true);
  });

  test("a request whose headers were not stored is not replayed, with another body neither", () => {
    const recording = startRecording(new CaptureMemory(0), { parts: ["POST", "/"], chars: 5 });
    const { record, lines, bodies, log } = recording;
    const capture = { record, lines, bodies, log, entries: [] };
    expect(buildReplay(capture, { body: new Uint8Array(1) })).toBe("head_cut");
    expect(toDetail(capture, "tunnel").truncated).toMatchObject({ request_head: true });
  });

  test("holds an event with its name and its id, not only its data", () => {
    const memory = new CaptureMemory(CAPTURE_MEMORY_MAX_BYTES);
    const recording = startRecording(memory, { parts: ["GET", "/"], chars: 4 });
    recording.startResponse(200, ["content-type", "text/event-stream"], 29);
    const before = memory.heldBytes;
    const long = "x".repeat(1_500);
    recording.addResponseBytes(new TextEncoder().encode(`event: ${long}\nid: ${long}\n\n`));
    expect(memory.bodyBytes - recording.bodyBytes).toBeGreaterThan(3_000);
    recording.takeEntries();
    expect(memory.bodyBytes - recording.bodyBytes).toBe(0);
    recording.complete();
    expect(memory.heldBytes - recording.bodyBytes).toBe(before);
  });

  test("is released completely, also for a plain request that is answered with 101", () => {
    const memory = new CaptureMemory(CAPTURE_MEMORY_MAX_BYTES);
    const recording = startRecording(memory, { parts: ["POST", "/"], chars: 5 });
    recording.addRequestBytes(new Uint8Array(1_000));
    recording.startResponse(101, ["a", "b"], 2);
    recording.complete();
    const { bodyBytes, headBytes } = recording.finalize();
    expect([bodyBytes, bodyBytes + headBytes]).toEqual([memory.bodyBytes, memory.heldBytes]);
    memory.release(bodyBytes);
    memory.releaseHead(headBytes);
    expect(memory.heldBytes).toBe(0);
    expect(recording.bodies.request.bytes).toHaveLength(1_000);
  });
});

describe("pages of captures", () => {
  test("fit into the platform's values, however large their headers are", () => {
    const stored = new Map<string, unknown>();
    const storage = {
      put: (values: Record<string, unknown>) => {
        for (const [key, value] of Object.entries(values)) stored.set(key, value);
        return Promise.resolve();
      },
    };
    const empty = { bytes: new Uint8Array(), isCut: false };
    const long = "\u4e16".repeat(CAPTURE_PAGE_MAX_BYTES - 1_000);
    const captures = [...long.slice(0, 4)].map((_, i) => ({
      id: toCaptureIdPrefix(i + 1),
      record: JSON.stringify({ i }),
      lines: JSON.stringify({ request: ["x-long", long], response: [] }),
      bodies: { request: empty, response: empty },
      bodyBytes: 0,
      headBytes: 0,
    }));
    new CaptureStore(storage as unknown as DurableObjectStorage).write(captures, []);
    const sizes = [...stored.values()].map((value) => serialize(value).length);
    expect(sizes).toHaveLength(2 * captures.length);
    expect(Math.max(...sizes)).toBeLessThan(2 * 1024 * 1024);
  });
});

test("a row counts as what is stored of it, however large its headers and bodies are", () => {
  const stored: unknown[] = [];
  const storage = {
    put: (values: Record<string, unknown>) => {
      stored.push(...Object.values(values));
      return Promise.resolve();
    },
  };
  const memory = new CaptureMemory(CAPTURE_MEMORY_MAX_BYTES);
  const recording = startRecording(memory, {
    parts: ["GET", `/${"p".repeat(50_000)}?${"q".repeat(50_000)}`, "a", "r".repeat(50_000)],
    chars: 150_000,
  });
  recording.startResponse(200, ["b", "s".repeat(50_000)], 50_000);
  recording.addResponseBytes(new Uint8Array(10_000));
  recording.complete();
  recording.isLongLived = true;
  const bytes = new CaptureStore(storage as unknown as DurableObjectStorage).write([], [recording]);
  const size = serialize(stored[0]).length;
  expect([stored.length, size > 200_000]).toEqual([1, true]);
  expect(Math.abs(bytes - size)).toBeLessThan(5_000);
});

describe("redaction", () => {
  test("replaces values by case-insensitive name, and does not modify its input", () => {
    const lines = ["Cookie", "a=1", "x", "y", "COOKIE", "b=2"];
    const redacted = redactHeaders(lines, new Set(["cookie"]));
    expect(redacted).toEqual(["Cookie", "[redacted]", "x", "y", "COOKIE", "[redacted]"]);
    expect(lines[1]).toBe("a=1");
  });

  test("settings hold each name once, in lower case", () => {
    const { redactHeaders } = CaptureSettings.parse({ redactHeaders: ["X-A", "x-a", "B"] });
    expect(redactHeaders).toEqual(["x-a", "b"]);
  });
});
