import { expect, test } from "vitest";
import {
  concatBytes,
  fromBase64,
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
