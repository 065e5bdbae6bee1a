import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  COMPARISON_MAX_DIFFERENCES,
  COMPARISON_VALUE_MAX_CHARS,
  compareResponses,
} from "../../../../../workers/api/inspector/comparison.ts";
import { buildCapture } from "../../../../harness/tunnel/capture.ts";

const captureResponse = (
  body: string | Uint8Array,
  headers: Record<string, string> = {},
  status = 200,
) => buildCapture({ status, response_headers: headers }, { answered: body });
const json = (value: unknown) => captureResponse(JSON.stringify(value));

describe("two responses", () => {
  test("are the same when only headers that change with time differ", async () => {
    const compared = await compareResponses(
      captureResponse("x", { date: "Sat, 21 Nov 2026 23:00:00 GMT", etag: '"1"' }),
      captureResponse("x", { date: "Sat, 21 Nov 2026 23:00:09 GMT", etag: '"1"', age: "3" }),
    );
    expect(compared).toMatchObject({
      same: true,
      headers: { added: { age: "3" }, removed: {}, changed: { date: {} } },
      body: { same: true, first_difference: null },
    });
  });

  test("differ in status, and in added, removed and changed headers", async () => {
    const compared = await compareResponses(
      captureResponse("x", { a: "1", b: "2", c: "3" }),
      captureResponse("x", { b: "2", c: "4", d: "5" }, 500),
    );
    expect(compared).toMatchObject({
      same: false,
      status: { original: 200, replayed: 500, same: false },
      headers: {
        added: { d: "5" },
        removed: { a: "1" },
        changed: { c: { original: "3", replayed: "4" } },
      },
    });
  });

  test("are compared without headers, and as they were sent, when the headers of one were not stored", async () => {
    const body = gzipSync("x");
    const cut = { request: false, response: false, request_head: false, response_head: true };
    const compared = await compareResponses(
      buildCapture({ truncated: cut }, { answered: body }),
      captureResponse(body, { "content-encoding": "gzip" }),
    );
    expect(compared).toMatchObject({
      same: true,
      headers: { cut: true, added: {}, removed: {}, changed: {} },
      body: { same: true },
    });
  });

  test("can be compared when one of them is missing", async () => {
    const nothing = buildCapture({ status: null, latency_ms: null, state: "failed" });
    const compared = await compareResponses(nothing, captureResponse("x"));
    expect(compared).toMatchObject({
      same: false,
      status: { original: null, replayed: 200 },
      latency_ms: { original: null, replayed: 12 },
      body: { first_difference: 0, size: { original: 0, replayed: 1 } },
    });
  });
});

describe("bodies", () => {
  test("are compared decompressed", async () => {
    const packed = captureResponse(gzipSync("same text"), { "content-encoding": "gzip" });
    const { body } = await compareResponses(packed, captureResponse("same text"));
    expect(body).toMatchObject({ same: true, first_difference: null });
    expect(body.size.original).not.toBe(body.size.replayed);
  });

  test("that can't be decompressed are compared as they were sent", async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    for (const [bytes, coding] of [
      [bomb, "gzip"],
      [Buffer.from("no gzip"), "gzip"],
      [Buffer.from("x"), "br"],
      [bomb, "gzip, gzip, gzip, gzip"],
      [Buffer.from("x"), "constructor"],
    ] as const) {
      const one = captureResponse(bytes, { "content-encoding": coding });
      expect((await compareResponses(one, one)).body).toMatchObject({ same: true });
    }
  });

  test("that were cut are compared as far as they were captured, and never as JSON", async () => {
    const half = (body: string, size: number) => ({
      ...captureResponse(body),
      response_size: size,
      truncated: { request: false, response: true, request_head: false, response_head: false },
    });
    const one = half("[1,2", 100);
    expect((await compareResponses(one, half("[1,2", 100))).body).toMatchObject({
      same: true,
      cut: true,
      differences: null,
    });
    expect((await compareResponses(one, half("[1,2", 101))).body.same).toBe(false);
    expect((await compareResponses(one, half("[1,3", 100))).body).toMatchObject({
      same: false,
      first_difference: 3,
    });
  });

  test("in JSON differ where their values differ, regardless of the order of fields", async () => {
    const compared = await compareResponses(
      json({ a: 1, list: [1, 2, { deep: "x" }], gone: null, "a/b~c": true, same: [[]] }),
      captureResponse(
        '{ "same": [[]], "a/b~c": false, "list": [1, 2, {"deep": "y"}, 4], "new": {"x": 1}, "a": 1 }',
      ),
    );
    expect(compared.body).toMatchObject({ same: false, more_differences: false });
    expect(compared.body.differences).toEqual([
      { path: "/list/2/deep", original: '"x"', replayed: '"y"' },
      { path: "/list/3", original: null, replayed: "4" },
      { path: "/gone", original: "null", replayed: null },
      { path: "/a~1b~0c", original: "true", replayed: "false" },
      { path: "/new", original: null, replayed: "{… 1}" },
    ]);
    const spaced = await compareResponses(json({ a: 1, b: 2 }), captureResponse('{"b":2, "a":1}'));
    expect(spaced.body).toMatchObject({ same: false, differences: [], more_differences: false });
  });

  test.each([
    ["an object and an array", "{}", "[]", { path: "", original: "{}", replayed: "[]" }],
    ["a number and its text", "1", '"1"', { path: "", original: "1", replayed: '"1"' }],
    ["null and nothing", '{"a":null}', "{}", { path: "/a", original: "null", replayed: null }],
    ["a prototype's name", '{"__proto__":1}', "{}", { path: "/__proto__", replayed: null }],
  ])("in JSON: %s differ", async (_name, original, replayed, difference) => {
    const compared = await compareResponses(captureResponse(original), captureResponse(replayed));
    expect(compared.body.differences).toEqual([expect.objectContaining(difference)]);
  });

  test("are not compared as JSON unless both are JSON", async () => {
    for (const text of ["", "{", "plain", "\0", "[1,]"]) {
      expect(
        (await compareResponses(json([1]), captureResponse(text))).body.differences,
      ).toBeNull();
    }
  });

  test("of any depth, length and width are compared within bounds", async () => {
    const deep = (value: string) =>
      captureResponse(`${"[".repeat(200_000)}${value}${"]".repeat(200_000)}`);
    const deepest = (await compareResponses(deep("1"), deep("2"))).body;
    expect(deepest).toMatchObject({ same: false, differences: [], more_differences: true });

    const wide = (value: number) => json(Array.from({ length: 50_000 }, () => value));
    const widest = (await compareResponses(wide(1), wide(2))).body;
    expect(widest.differences).toHaveLength(COMPARISON_MAX_DIFFERENCES);
    expect(widest.more_differences).toBe(true);

    const fields = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`f${at}`, at]));
    const named = { ["n".repeat(300_000)]: fields, z: "y".repeat(100_000) };
    const longest = await compareResponses(json(named), json({ ...named, z: 1 }));
    expect(longest.body.more_differences).toBe(true);
    expect(JSON.stringify(longest).length).toBeLessThan(10_000);
    expect(longest.body.differences).toEqual([
      { path: "/z", original: `"${"y".repeat(COMPARISON_VALUE_MAX_CHARS - 1)}…`, replayed: "1" },
    ]);
  });

  test("differ first at the first changed byte", async () => {
    const bytes = fc.uint8Array({ minLength: 1, maxLength: 300, size: "max" });
    const change = fc.integer({ min: 1, max: 0xff });
    await fc.assert(
      fc.asyncProperty(bytes, fc.nat(), change, async (original, n, difference) => {
        const at = n % original.length;
        const replayed = original.slice();
        replayed[at]! ^= difference;
        const one = captureResponse(original);
        const { body } = await compareResponses(one, captureResponse(replayed));
        expect(body).toMatchObject({ same: false, first_difference: at });
        const longer = captureResponse(Buffer.concat([original, original]));
        const compared = await compareResponses(one, longer);
        expect(compared.body.first_difference).toBe(original.length);
      }),
      { seed: 7, numRuns: 200 },
    );
  });
});
