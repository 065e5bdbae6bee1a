/** Bodies of captured requests, decoded in the browser. Their senders may be hostile. */
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import {
  decodeContent,
  DECODED_MAX_BYTES,
} from "../../../dashboard/pages/requests/decode/content-encoding.ts";
import { formatHexRow } from "../../../dashboard/pages/requests/decode/hex.ts";
import { readImageSize } from "../../../dashboard/pages/requests/decode/image-size.ts";
import {
  getContentKind,
  parseMediaType,
} from "../../../dashboard/pages/requests/decode/media-type.ts";
import { parseMultipart } from "../../../dashboard/pages/requests/decode/multipart.ts";
import { decodeText, looksLikeText } from "../../../dashboard/pages/requests/decode/text.ts";
import {
  PIECES_MAX,
  splitIntoPieces,
} from "../../../dashboard/pages/requests/decode/text-pieces.ts";
import { explainMissingBody } from "../../../dashboard/pages/requests/decode/missing-body.ts";
import { buildCapture } from "../../harness/tunnel/capture.ts";

const bytes = (content: Buffer | string) => new Uint8Array(Buffer.from(content));
const read = (content: Uint8Array) => Buffer.from(content).toString();

describe("a compressed body", () => {
  const text = "a text ".repeat(100);

  test.each([
    ["gzip", gzipSync(text)],
    ["x-gzip", gzipSync(text)],
    ["deflate", deflateSync(text)],
    ["deflate", deflateRawSync(text)],
    ["deflate, GZIP", gzipSync(deflateSync(text))],
    ["identity", Buffer.from(text)],
  ])("is decompressed: %s", async (encoding, body) => {
    const content = await decodeContent(bytes(body), encoding);
    expect([read(content.bytes), content.problem]).toEqual([text, null]);
  });

  test("that would become a gigabyte is cut", async () => {
    const bomb = bytes(gzipSync(Buffer.alloc(64 * 1024 * 1024)));
    const content = await decodeContent(bomb, "gzip");
    expect(content.bytes).toHaveLength(DECODED_MAX_BYTES);
    expect(content.problem).toEqual({ kind: "too_long", coding: "gzip" });
  });

  test("that was cut is shown as far as it goes", async () => {
    const long = Array.from({ length: 50_000 }, (_, n) => n).join();
    const whole = gzipSync(long);
    const content = await decodeContent(bytes(whole.subarray(0, whole.length - 2_000)), "gzip");
    expect(content.problem).toEqual({ kind: "incomplete", coding: "gzip" });
    expect(content.bytes.length).toBeGreaterThan(1_000);
    expect(long.startsWith(read(content.bytes))).toBe(true);
  });

  test("of an unknown coding stays as it is", async () => {
    const body = bytes(brotliCompressSync(text));
    for (const encoding of ["__proto__", "constructor", "x".repeat(1_000_000)]) {
      const content = await decodeContent(body, encoding);
      expect([content.bytes, content.problem?.kind]).toEqual([body, "unsupported"]);
    }
  });

  test("that was compressed a hundred times is not decompressed a hundred times", async () => {
    const content = await decodeContent(bytes("x"), Array(100).fill("identity, gzip").join());
    expect(content.problem).not.toBeNull();
  });
});

describe("a content type", () => {
  test.each([
    ["application/json; charset=utf-8", "json"],
    ["application/problem+JSON", "json"],
    ["application/x-www-form-urlencoded", "form"],
    ["multipart/form-data; boundary=a", "multipart"],
    ["image/png", "image"],
    ["image/svg+xml", "text"],
    ["text/html", "text"],
    ["application/octet-stream", null],
    ["", null],
    [undefined, null],
  ])("%s is shown as %s", (value, kind) => {
    expect(getContentKind(parseMediaType(value))).toBe(kind);
  });

  test("has quoted parameters, and the first of two with the same name", () => {
    const { parameters } = parseMediaType('a/b; Boundary="x;\\"y"; charset=one; charset=two');
    expect([parameters.get("boundary"), parameters.get("charset")]).toEqual(['x;"y', "one"]);
  });

  test("of a megabyte takes no time", () => {
    expect(parseMediaType(";a".repeat(500_000)).essence).toBe("");
  });
});

describe("a text", () => {
  test("has its declared encoding; an unknown one is read as UTF-8", () => {
    expect(decodeText(bytes(Buffer.from("é", "latin1")), "iso-8859-1").text).toBe("é");
    expect(decodeText(bytes("é"), "klingon")).toMatchObject({
      text: "é",
      unknownCharset: "klingon",
    });
    expect(decodeText(bytes(Buffer.from([0xff])), "utf-8").hasInvalidBytes).toBe(true);
    expect(decodeText(bytes(Buffer.from("\ufeffé", "utf16le")), "utf-8").text).toBe("é");
  });

  test("is told from other bytes", () => {
    expect(looksLikeText(bytes("Grüße\r\n"))).toBe(true);
    expect(looksLikeText(bytes("ž".repeat(8_000)))).toBe(true);
    expect(looksLikeText(bytes(Buffer.from([1, 2, 3, 4])))).toBe(false);
    expect(looksLikeText(bytes("a\0b"))).toBe(false);
  });

  test("is split into lines, and long lines into pieces without breaking characters", () => {
    const long = "😀".repeat(3_000);
    const pieces = splitIntoPieces(`one\r\n\n${long}\n`);
    const all = Array.from({ length: pieces.count }, (_, index) => pieces.get(index));
    expect(all.slice(0, 2)).toEqual([
      { lineNumber: 1, text: "one" },
      { lineNumber: 2, text: "" },
    ]);
    expect(
      all
        .slice(2, -1)
        .map(({ text }) => text)
        .join(""),
    ).toBe(long);
    expect(all.every(({ text }) => text.isWellFormed())).toBe(true);
    expect(all.at(-1)).toEqual({ lineNumber: 4, text: "" });
    expect([pieces.lineCount, pieces.isCut]).toEqual([4, false]);
  });

  test("of millions of lines is cut", () => {
    const pieces = splitIntoPieces("\n".repeat(4_000_000));
    expect([pieces.count, pieces.isCut]).toEqual([PIECES_MAX, true]);
  });
});

describe("a multipart body", () => {
  const part = (head: string, body: string) => `--b\r\n${head}\r\n\r\n${body}\r\n`;

  test("has names, file names, types and exact bytes", () => {
    const binary = Buffer.from([0, 255, 13, 10, 45, 45, 99]);
    const body = Buffer.concat([
      Buffer.from("preamble\r\n"),
      Buffer.from(part('Content-Disposition: form-data; name="a"', "1")),
      Buffer.from('--b\r\nContent-Disposition: form-data; name="f\\"1"; filename="ž.bin"\r\n'),
      Buffer.from("Content-Type: image/png\r\n\r\n"),
      binary,
      Buffer.from("\r\n--b--\r\nepilogue"),
    ]);
    const result = parseMultipart(bytes(body), "b");
    expect(result).toMatchObject({
      hasMore: false,
      parts: [
        { name: "a", fileName: null, bytes: bytes("1"), isCut: false },
        {
          name: 'f"1',
          fileName: "ž.bin",
          headers: { "content-type": "image/png" },
          bytes: bytes(binary),
        },
      ],
    });
  });

  test("without a boundary, or with another one, is refused", () => {
    const body = bytes(part("a: b", "1"));
    expect(parseMultipart(body, undefined)).toEqual({ problem: "no_boundary" });
    expect(parseMultipart(body, "x".repeat(100_000))).toEqual({ problem: "no_boundary" });
    expect(parseMultipart(body, "other")).toEqual({ problem: "no_parts" });
  });

  test("that ends within a part is marked as cut", () => {
    expect(parseMultipart(bytes("--b\r\na: b\r\n\r\nhalf"), "b")).toMatchObject({
      parts: [{ bytes: bytes("half"), isCut: true }],
    });
    expect(parseMultipart(bytes("--b\r\na: b"), "b")).toMatchObject({ parts: [{ isCut: true }] });
  });

  test("with parts that have no head, and with too many parts", () => {
    expect(parseMultipart(bytes("--b\r\n\r\nbare\r\n--b--"), "b")).toMatchObject({
      parts: [{ name: null, headers: {}, bytes: bytes("bare") }],
    });
    const many = parseMultipart(bytes(part("a: b", "1").repeat(1_000)), "b");
    expect(many).toMatchObject({ hasMore: true });
  });
});

describe("an image", () => {
  test("has its size in its first bytes", () => {
    const png = Buffer.alloc(24);
    png.write("\x89PNG\r\n\x1a\n", "latin1");
    png.writeUInt32BE(100_000, 16);
    png.writeUInt32BE(50_000, 20);
    expect(readImageSize(bytes(png))).toEqual({ width: 100_000, height: 50_000 });
    const gif = Buffer.from("GIF89a\x02\x00\x03\x00", "latin1");
    expect(readImageSize(bytes(gif))).toEqual({ width: 2, height: 3 });
    const jpeg = Buffer.from("ffd8ffe00004aaaaffc0000b080010002003", "hex");
    expect(readImageSize(bytes(jpeg))).toEqual({ width: 32, height: 16 });
  });

  test.each(["", "ffd8", "ffd8ffe0", "89504e47", "<svg/>", "ffd8ffe00000ffe00000"])(
    "is nothing when its bytes are not those of one: %s",
    (hex) => {
      expect(readImageSize(bytes(Buffer.from(hex, "hex")))).toBeNull();
    },
  );
});

test("a hex dump shows printable ASCII only", () => {
  expect(formatHexRow(bytes("<b>\u202e\n"), 0)).toEqual({
    offset: "00000000",
    hex: "3c 62 3e e2 80 ae 0a  ",
    text: "<b>....",
  });
});

test("a missing body says why", () => {
  const truncated = { request: true, response: false, request_head: false, response_head: false };
  const explain = (change: Parameters<typeof buildCapture>[0], stored: number) =>
    explainMissingBody(buildCapture({ truncated, ...change }), "request", stored)?.text;
  expect(explain({ request_size: 600_000 }, 512 * 1024)).toBe(
    "Cut after 524 kB: the whole body has 600 kB.",
  );
  expect(explain({ request_size: 5 }, 0)).toContain("bodies were not captured");
  expect(explain({ request_size: 0, state: "refused" }, 0)).toContain("refused");
  expect(explain({ request_size: 0, state: "failed" }, 0)).toContain("was not read");
  expect(explain({ request_size: 9 }, 5)).toContain("first 5 B of 9 B");
  expect(explain({ request_size: 5, state: "aborted" }, 5)).toContain("broke off");
  expect(explain({ request_size: 5, state: "open" }, 5)).toContain("on its way");
  const complete = { request: false, response: false, request_head: false, response_head: false };
  expect(explain({ truncated: complete }, 5)).toBeUndefined();
});
