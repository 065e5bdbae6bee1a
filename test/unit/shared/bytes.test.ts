import { describe, expect, test } from "vitest";
import {
  concatBytes,
  freeBytes,
  fromBase64,
  fromBase64Url,
  fromCanonicalBase64,
  fromHex,
  toBase64,
  toBase64Url,
  toHex,
  toUtf8,
  toUuid,
} from "../../../shared/bytes.ts";

const BYTES = Uint8Array.from({ length: 20_000 }, (_, at) => (at * 7) & 0xff);

test("bytes survive hex and both kinds of base64", () => {
  expect(fromHex(toHex(BYTES))).toEqual(BYTES);
  expect(fromBase64(toBase64(BYTES))).toEqual(BYTES);
  expect(fromBase64(toBase64Url(BYTES))).toEqual(BYTES);
  expect(toBase64(BYTES)).toBe(Buffer.from(BYTES).toString("base64"));
  expect(toBase64Url(BYTES)).toBe(Buffer.from(BYTES).toString("base64url"));
});

test.each(["a", "a*", "aa=a", "aaaaa", " aa"])("%j is not base64", (text) => {
  expect(fromBase64(text)).toBeNull();
});

describe("a token's text", () => {
  const bytes = Uint8Array.of(0xfb, 0xef, 0xff, 0x01);

  test("is base64url without padding, or base64 with padding", () => {
    expect(fromBase64Url("--__AQ")).toEqual(bytes);
    expect(fromCanonicalBase64("--__AQ")).toEqual(bytes);
    expect(fromCanonicalBase64("++//AQ==")).toEqual(bytes);
    expect(fromBase64Url("")).toHaveLength(0);
    for (let length = 0; length < 9; length++) {
      const some = BYTES.slice(7, 7 + length);
      expect(fromBase64Url(toBase64Url(some))).toEqual(some);
      expect(fromCanonicalBase64(toBase64(some))).toEqual(some);
    }
  });

  test.each([
    "--__AR",
    "--__AQ==",
    "++//AQ",
    "-+_/AQ==",
    "--__AQ=",
    "--__A",
    "--__AQ\n",
    " --__AQ",
  ])("has no second spelling: %j", (text) => {
    expect([fromBase64Url(text), fromCanonicalBase64(text)]).toEqual([null, null]);
  });
});

test("an odd number of hexadecimal digits throws", () => {
  expect(() => fromHex("abc")).toThrow();
});

test("sixteen bytes are written as a UUID", () => {
  expect(toUuid(fromHex("00112233445566778899aabbccddeeff"))).toBe(
    "00112233-4455-6677-8899-aabbccddeeff",
  );
});

test("parts are joined in order", () => {
  expect(concatBytes([toUtf8("a"), new Uint8Array(0), toUtf8("é")])).toEqual(
    Uint8Array.of(0x61, 0xc3, 0xa9),
  );
});

test("a million parts are joined", () => {
  expect(concatBytes(Array<Uint8Array>(1_000_000).fill(Uint8Array.of(1)))).toHaveLength(1_000_000);
});

test("a freed view has no memory, nor has its buffer", () => {
  const bytes = BYTES.slice();
  freeBytes(bytes.subarray(10));
  expect([bytes.byteLength, bytes.buffer.byteLength]).toEqual([0, 0]);
});
