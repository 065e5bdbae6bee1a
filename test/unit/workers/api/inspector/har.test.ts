import { brotliCompressSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type { CaptureDetail } from "../../../../../protocol/schemas/inspector/captures.ts";
import { HAR_END, HAR_START, buildHarEntry } from "../../../../../workers/api/inspector/har.ts";
import { buildCapture } from "../../../../harness/tunnel/capture.ts";
import { HttpArchive } from "../../../../harness/formats/http-archive.ts";

const ORIGIN = "https://shop.example.com";

async function buildEntry(event: CaptureDetail, includesBodies = true) {
  const entry = await buildHarEntry(event, { origin: ORIGIN, includesBodies });
  const archive: unknown = JSON.parse(HAR_START + JSON.stringify(entry) + HAR_END);
  return HttpArchive.parse(archive).log.entries[0]!;
}

const captureResponse = (
  body: Uint8Array | string,
  response_headers: Record<string, string> = {},
) => buildCapture({ response_headers }, { answered: body });

describe("an entry", () => {
  test("has the request and its response", async () => {
    const event = buildCapture(
      {
        method: "POST",
        path: "/orders",
        query: "a=1&b=%20x+y&bad=%zz&=&c",
        status: 302,
        request_headers: { "content-type": "text/plain", cookie: "a=b; c=d=e; nothing" },
        response_headers: {
          location: "/orders/7",
          "set-cookie":
            "s=1; Path=/; HttpOnly; Secure; Expires=Sat, 21 Nov 2026 23:00:00 GMT\nt=2; Domain=x.example",
        },
      },
      { sent: "žluť", answered: "gone" },
    );
    expect(await buildEntry(event)).toMatchObject({
      startedDateTime: event.timestamp,
      time: 20,
      timings: { send: 0, wait: 12, receive: 8 },
      request: {
        method: "POST",
        url: `${ORIGIN}/orders?a=1&b=%20x+y&bad=%zz&=&c`,
        cookies: [
          { name: "a", value: "b" },
          { name: "c", value: "d=e" },
        ],
        queryString: [
          { name: "a", value: "1" },
          { name: "b", value: " x y" },
          { name: "bad", value: "%zz" },
          { name: "", value: "" },
          { name: "c", value: "" },
        ],
        postData: { mimeType: "text/plain", text: "žluť" },
        bodySize: 6,
      },
      response: {
        status: 302,
        redirectURL: "/orders/7",
        headers: [
          { name: "location", value: "/orders/7" },
          { name: "set-cookie", value: expect.stringMatching(/^s=1;/) },
          { name: "set-cookie", value: "t=2; Domain=x.example" },
        ],
        cookies: [
          {
            name: "s",
            value: "1",
            path: "/",
            httpOnly: true,
            secure: true,
            expires: "2026-11-21T23:00:00.000Z",
          },
          { name: "t", value: "2", domain: "x.example", httpOnly: false, secure: false },
        ],
        content: { size: 4, text: "gone" },
      },
      _clientAddress: "203.0.113.7",
      _state: "complete",
    });
  });

  test("of a request without a response says why", async () => {
    const event = buildCapture({
      status: null,
      latency_ms: null,
      duration_ms: null,
      state: "failed",
      error: "agent_offline",
    });
    expect(await buildEntry(event)).toMatchObject({
      time: 0,
      response: { status: 0, content: { size: 0 } },
      comment: "agent_offline",
      _state: "failed",
    });
  });

  test("of a replay names the original", async () => {
    const replay_of = "019a0000-0000-7000-8000-00000000000f";
    expect(await buildEntry(buildCapture({ replay_of }))).toMatchObject({ _replayOf: replay_of });
  });

  test("of a WebSocket has its messages in Chrome's format", async () => {
    const timestamp = "2026-11-21T23:00:00.250Z";
    const data = (bytes: string) => Buffer.from(bytes).toString("base64");
    const event = buildCapture({
      kind: "websocket",
      status: 101,
      frames: [
        { timestamp, from: "client", kind: "text", size: 2, data: data("hi") },
        { timestamp, from: "server", kind: "binary", size: 5_000, data: data("\0\u0001") },
        { timestamp, from: "server", kind: "close", size: 2, data: "A+g=" },
      ],
      frames_total: 3,
    });
    const time = Date.parse(timestamp) / 1000;
    expect(await buildEntry(event)).toMatchObject({
      _resourceType: "websocket",
      _webSocketMessages: [
        { type: "send", time, opcode: 1, data: "hi" },
        { type: "receive", time, opcode: 2, data: data("\0\u0001"), _size: 5_000 },
        { type: "receive", time, opcode: 8, data: "A+g=" },
      ],
    });
  });

  test("of an event stream has its events", async () => {
    const timestamp = "2026-11-21T23:00:00.250Z";
    const events = [{ timestamp, size: 9, event: "message", id: null, data: "1" }];
    const event = buildCapture({ kind: "sse", events, events_total: 1 });
    expect(await buildEntry(event)).toMatchObject({
      _resourceType: "eventsource",
      _events: events,
    });
  });
});

describe("a body", () => {
  const text = "the same text, ".repeat(100);
  test.each([
    ["gzip", gzipSync(text)],
    ["deflate", deflateSync(text)],
    ["deflate, gzip", gzipSync(deflateSync(text))],
    ["identity", Buffer.from(text)],
  ])("in %s is decompressed", async (coding, packed) => {
    const { response } = await buildEntry(captureResponse(packed, { "content-encoding": coding }));
    expect(response).toMatchObject({
      bodySize: packed.length,
      content: { size: text.length, text },
    });
    expect(response.content.compression ?? 0).toBe(text.length - packed.length);
  });

  test("that can't be decompressed is as it was sent, with a comment", async () => {
    const bomb = gzipSync(Buffer.alloc(16 * 1024 * 1024));
    for (const [coding, packed] of [
      ["br", brotliCompressSync(text)],
      ["gzip", bomb],
      ["gzip", gzipSync(text).subarray(0, 30)],
    ] as const) {
      const { response } = await buildEntry(
        captureResponse(packed, { "content-encoding": coding }),
      );
      expect(response.content).toMatchObject({
        size: packed.length,
        text: packed.toString("base64"),
        encoding: "base64",
        comment: `not decompressed: ${coding}`,
      });
    }
  });

  test("that is not text is in base64, on either side", async () => {
    const bytes = Buffer.from([0, 255, 1]);
    const both = buildCapture({ method: "POST" }, { sent: bytes, answered: bytes });
    const { request, response } = await buildEntry(both);
    const base64 = bytes.toString("base64");
    expect(request.postData).toMatchObject({ text: base64, _encoding: "base64" });
    expect(response.content).toMatchObject({ size: 3, text: base64, encoding: "base64" });
  });

  test("whose headers were not captured says so on its side", async () => {
    const event = buildCapture({ method: "GET" }, { sent: "", answered: "" });
    const cut = { request: false, response: false, request_head: true, response_head: false };
    const first = await buildEntry({ ...event, truncated: cut });
    expect([first.request, first.response].map(({ comment }) => comment)).toEqual([
      "the headers and the end of a long path were not captured",
      undefined,
    ]);
    const flipped = { ...cut, request_head: false, response_head: true };
    const second = await buildEntry({ ...event, truncated: flipped });
    expect([second.request, second.response].map(({ comment }) => comment)).toEqual([
      undefined,
      "the headers were not captured",
    ]);
  });

  test("that was cut has a comment with its size", async () => {
    const event = {
      ...buildCapture({ method: "PUT" }, { sent: "abc", answered: "defg" }),
      request_size: 1_000,
      response_size: 2_000,
      truncated: { request: true, response: true, request_head: false, response_head: false },
    };
    const { request, response } = await buildEntry(event);
    expect(request).toMatchObject({
      bodySize: 1_000,
      postData: { text: "abc", comment: "cut: the first 3 of 1000 bytes" },
    });
    expect(response).toMatchObject({
      bodySize: 2_000,
      content: { size: 2_000, text: "defg", comment: "cut: the first 4 of 2000 bytes" },
    });
  });

  test("beyond the archive's maximum size is omitted, with a comment", async () => {
    const { request, response } = await buildEntry(
      buildCapture({ method: "PUT" }, { sent: "abc", answered: "defg" }),
      false,
    );
    expect(request.postData).toMatchObject({
      text: "",
      comment: expect.stringMatching(/^omitted/),
    });
    expect(response.content.text).toBeUndefined();
    expect(response.content).toMatchObject({
      size: 4,
      comment: expect.stringMatching(/^omitted/),
    });
  });
});
