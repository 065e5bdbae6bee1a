import { describe, expect, test } from "vitest";
import {
  utf8ToLatin1,
  toResponsePairs,
  decodeHeaderValue,
} from "../../../../agent/origin/header-bytes.ts";

describe("header values", () => {
  test("keep UTF-8 to the local server and back", () => {
    const value = "attachment; filename=Übung-日本-😀.txt";
    const bytes = Buffer.from(utf8ToLatin1(value), "latin1");
    expect(bytes).toEqual(Buffer.from(value, "utf8"));
    expect(decodeHeaderValue(bytes)).toBe(value);
  });

  test("that are not UTF-8 are read as Latin-1", () => {
    expect(decodeHeaderValue(Buffer.from("café", "latin1"))).toBe("café");
    expect(decodeHeaderValue(Buffer.from([0xc3, 0x28]))).toBe("Ã(");
  });

  test("of ASCII do not change", () => {
    expect(utf8ToLatin1("a=1; b=2")).toBe("a=1; b=2");
    expect(decodeHeaderValue(Buffer.from("a=1; b=2"))).toBe("a=1; b=2");
  });
});

describe("a response's headers", () => {
  const lines = (pairs: string[]) => toResponsePairs(pairs.map((part) => Buffer.from(part)));

  test("keep their order, repeated names and the case of their names", () => {
    const pairs = [
      "Set-Cookie",
      "a=1",
      "X-Case",
      "Yes",
      "set-cookie",
      "b=2",
      "Content-Length",
      "5",
    ];
    expect(lines(pairs)).toEqual(pairs);
  });

  test("of the connection itself are not forwarded, and neither are those that Connection lists", () => {
    expect(
      lines(
        [
          ["Connection", "X-Private, close"],
          ["Keep-Alive", "timeout=5"],
          ["Transfer-Encoding", "chunked"],
          ["Trailer", "x-sum"],
          ["X-Private", "1"],
          ["X-Public", "2"],
          ["Vary", "X-Public"],
        ].flat(),
      ),
    ).toEqual(["X-Public", "2", "Vary", "X-Public"]);
  });

  test("are the same from bytes and from Node.js strings", () => {
    const value = "naïve";
    const asText = ["x", Buffer.from(value, "utf8").toString("latin1")];
    expect(toResponsePairs(asText)).toEqual(["x", value]);
    expect(toResponsePairs([Buffer.from("x"), Buffer.from(value, "utf8")])).toEqual(["x", value]);
  });
});
