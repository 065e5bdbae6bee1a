/** Forms, cookies, tokens, messages and changes of captured requests. */
import { describe, expect, test } from "vitest";
import { compareRequests } from "../../../dashboard/pages/requests/decode/compare-requests.ts";
import {
  parseCookies,
  parseResponseCookies,
} from "../../../dashboard/pages/requests/decode/cookies.ts";
import { FIELDS_MAX, parseForm } from "../../../dashboard/pages/requests/decode/form.ts";
import { findJsonWebTokens } from "../../../dashboard/pages/requests/decode/json-web-token.ts";
import {
  explainClose,
  filterStreamItems,
  listStreamItems,
} from "../../../dashboard/pages/requests/decode/message-stream.ts";
import {
  toEditedRequest,
  toReplayRequest,
} from "../../../dashboard/pages/requests/detail/replay/replay-changes.ts";
import { isRedacted } from "../../../dashboard/pages/requests/decode/redacted.ts";
import { formatOffset } from "../../../dashboard/ui/numbers.ts";
import { buildCapture } from "../../harness/tunnel/capture.ts";

test("a form has decoded fields, repeated ones, and invalid escapes as they are", () => {
  expect(parseForm("a=1+2&a=%C3%A9&&b&=c&d=%zz%E9&__proto__=x").fields).toEqual([
    { name: "a", value: "1 2" },
    { name: "a", value: "é" },
    { name: "b", value: "" },
    { name: "", value: "c" },
    { name: "d", value: "%zz�" },
    { name: "__proto__", value: "x" },
  ]);
  const many = parseForm("a=1&".repeat(100_000));
  expect([many.fields.length, many.isCut]).toEqual([FIELDS_MAX, true]);
});

test("cookies are split into names, values and attributes", () => {
  expect(parseCookies("a=1; b=x=y;; flag")).toEqual([
    { name: "a", value: "1" },
    { name: "b", value: "x=y" },
    { name: "", value: "flag" },
  ]);
  expect(parseResponseCookies("a=1; Path=/; Secure\nb=2")).toEqual([
    { name: "a", value: "1", attributes: "Path=/; Secure" },
    { name: "b", value: "2", attributes: "" },
  ]);
});

describe("a JSON Web Token", () => {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const token = (header: unknown, claims: unknown) => `${encode(header)}.${encode(claims)}.c2ln`;

  test("is found in a text, with its times", () => {
    const text = `Bearer ${token({ alg: "none" }, { sub: "ann", exp: 1_800_000_000, iat: "never" })}`;
    const [found, ...others] = findJsonWebTokens(text);
    expect(others).toEqual([]);
    expect(found!.claims.entries[0]).toEqual({
      key: "sub",
      value: { kind: "string", text: "ann" },
    });
    expect(found!.times).toEqual([{ claim: "exp", timestamp: "2027-01-15T08:00:00.000Z" }]);
  });

  test.each([
    ["a time that no calendar has", token({ alg: "x" }, { exp: 1e300 })],
    ["no header", token({ a: 1 }, {}).replace(/^[^.]+/, "eyJhIjoxfQ")],
  ])("has no times, or is none, with %s", (_, text) => {
    expect(findJsonWebTokens(text).flatMap(({ times }) => times)).toEqual([]);
  });

  test.each([
    "eyJ.eyJ.x",
    "eyJhbGciOiJub25lIn0.!!.",
    "ey".repeat(500_000),
    "eyJ".repeat(3) + ".".repeat(1_000_000),
    "a.b.c",
  ])("is not found in other texts", (text) => {
    expect(findJsonWebTokens(text)).toEqual([]);
  });
});

describe("messages", () => {
  const frame = (
    kind: "text" | "binary" | "close",
    data: Buffer,
    from: "client" | "server" = "client",
  ) => ({
    timestamp: "2026-11-21T23:00:01.500Z",
    from,
    kind,
    size: data.length,
    data: data.toString("base64"),
  });
  const items = listStreamItems(
    buildCapture({
      kind: "websocket",
      frames: [
        frame("text", Buffer.from("Hello <b>")),
        frame("binary", Buffer.from([1, 2]), "server"),
        frame("close", Buffer.from([0x0f, 0xa1, 0x6f, 0x6b]), "server"),
        frame("close", Buffer.alloc(0)),
      ],
    }),
  );

  test("have their offsets, texts and close codes", () => {
    expect(items[0]).toMatchObject({ offsetMs: 1_500, text: "Hello <b>", close: null });
    expect(items[1]).toMatchObject({ text: null, bytes: new Uint8Array([1, 2]) });
    expect(items[2]).toMatchObject({ close: { code: 4001, reason: "ok" } });
    expect(items[3]).toMatchObject({ close: { code: 1005, reason: "" } });
    expect([1000, 1006, 3001, 4001, 12].map((code) => explainClose(code))).toEqual([
      "Normal closure",
      "The connection was lost",
      "A code of a library",
      "A code of this application",
      "Unknown code",
    ]);
  });

  test("are filtered by text and sender", () => {
    expect(filterStreamItems(items, { from: "", text: "HELLO" })).toEqual([items[0]]);
    expect(filterStreamItems(items, { from: "server", text: "" })).toEqual([items[1], items[2]]);
  });
});

test("the offsets of a stream's messages have milliseconds, however long it was open", () => {
  expect([0, 1_240, 74_004, 74_504, 7_200_000].map(formatOffset)).toEqual([
    "0:00.000",
    "0:01.240",
    "1:14.004",
    "1:14.504",
    "2:00:00.000",
  ]);
});

test("redacted values are recognized, also of several headers with the same name", () => {
  expect(["[redacted]", "[redacted]\n[redacted]", "[redacted], [redacted]"].every(isRedacted)).toBe(
    true,
  );
  expect(["", "a=[redacted]", "[redacted]\na=b"].some(isRedacted)).toBe(false);
});

describe("a replay", () => {
  const request = buildCapture(
    {
      method: "POST",
      path: "/a",
      query: "b=c",
      request_headers: {
        host: "x.example",
        cookie: "[redacted]",
        "x-forwarded-for": "192.0.2.1",
        accept: "*/*",
        "x-old": "1",
      },
    },
    { sent: "one\r\ntwo" },
  );
  const edited = toEditedRequest(request);

  test("without edits has no changes", () => {
    expect(edited.headers).toBe("accept: */*\nx-old: 1");
    expect(toReplayRequest(request, { ...edited, body: "one\ntwo" })).toEqual({});
  });

  test("has the edits only", () => {
    const headers = "Accept: */*\nx-new: a\nx-new: b\n\n__proto__: c";
    const changes = toReplayRequest(request, { ...edited, query: "", headers, body: "new" });
    expect(changes).toMatchObject({ query: null, body: "new" });
    expect(Object.entries(changes.headers!)).toEqual([
      ["x-old", null],
      ["x-new", "a, b"],
      ["__proto__", "c"],
    ]);
  });

  test.each([
    [{ headers: "accept: */*\naccept */*" }, "Line 2 has no colon."],
    [{ headers: "bad name: 1" }, "Line 1 has no valid name before the colon."],
    [{ headers: "host: x.example" }, "Line 1 sets host, which is generated."],
    [{ method: "GET /" }, "Enter an HTTP method, such as POST."],
  ])("with %j is refused before it is sent", (edit, message) => {
    expect(() => toReplayRequest(request, { ...edited, ...edit })).toThrow(message);
  });

  test("does not send several redacted values either", () => {
    const tokens = { authorization: "[redacted], [redacted]" };
    expect(toEditedRequest(buildCapture({ request_headers: tokens })).headers).toBe("");
  });

  test("of bytes that are not text, or compressed, edits base64", () => {
    const binary = buildCapture({}, { sent: Buffer.from([255, 0]) });
    expect(toEditedRequest(binary)).toMatchObject({ body: "/wA=", format: "base64" });
    const gzip = buildCapture({ request_headers: { "content-encoding": "gzip" } }, { sent: "x" });
    expect(toEditedRequest(gzip).format).toBe("base64");
    const changes = toReplayRequest(binary, { ...toEditedRequest(binary), body: "AAAA\nAAAA" });
    expect(changes).toEqual({ body_base64: "AAAAAAAA" });
  });
});

test("a comparison lists what differs", () => {
  const before = buildCapture({ query: "a", request_headers: { a: "1", b: "2" } });
  const after = buildCapture({ path: "/x", status: 404, request_headers: { a: "1", c: "3" } });
  expect(compareRequests(before, after)).toEqual({
    line: [
      { name: "Path", before: "/", after: "/x" },
      { name: "Query", before: "a", after: null },
    ],
    requestHeaders: [
      { name: "b", before: "2", after: null },
      { name: "c", before: null, after: "3" },
    ],
    outcome: [{ name: "Status", before: "200", after: "404" }],
    responseHeaders: [],
  });
});

test("a comparison does not take headers that were not stored for removed ones", () => {
  const before = buildCapture({ request_headers: { a: "1" }, response_headers: { b: "1" } });
  const complete = { request: false, response: false, request_head: false, response_head: false };
  const compareWith = (cut: object) =>
    compareRequests(before, buildCapture({ ...before, truncated: { ...complete, ...cut } }));
  expect(compareWith({ request_head: true })).toMatchObject({
    requestHeaders: null,
    responseHeaders: [],
  });
  expect(compareWith({ response_head: true })).toMatchObject({
    requestHeaders: [],
    responseHeaders: null,
  });
});
