import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  FRAMING_TURN_MAX_BYTES,
  RequestBody,
} from "../../../../../self-host/front-proxy/http1/request-body.ts";

/** Reads the bytes in parts of these sizes. @returns what is forwarded and what follows, or null when it is malformed. */
function read(body: number | "chunked", text: string, sizes: number[] = []) {
  const bytes = Buffer.from(text, "latin1");
  const reader = new RequestBody({ body, expectsContinue: false }, () => undefined);
  let forwarded = "";
  let at = 0;
  for (const size of [...sizes, bytes.length]) {
    const part = bytes.subarray(at, at + size);
    if (part.length === 0 || reader.isComplete) break;
    const taken = reader.read(part);
    if (taken === undefined) return null;
    for (const piece of taken.forward) forwarded += Buffer.from(piece).toString("latin1");
    at += taken.length;
  }
  return { forwarded, rest: text.slice(at), isComplete: reader.isComplete };
}

/** The data of a chunked body without extensions and trailers. */
function decode(text: string): string {
  let data = "";
  let at = 0;
  for (;;) {
    const [line, size] = /^([0-9a-f]+)\r\n/.exec(text.slice(at))!;
    at += line.length;
    const end = at + parseInt(size!, 16);
    data += text.slice(at, end);
    expect(text.slice(end, end + 2)).toBe("\r\n");
    at = end + 2;
    if (size === "0") break;
  }
  expect(at).toBe(text.length);
  return data;
}

const parts = fc.array(fc.integer({ min: 1, max: 7 }), { maxLength: 60 });

test("a counted body ends after its length, however it is cut", () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.string(), parts, (text, rest, sizes) => {
      const bytes = Buffer.from(text).toString("latin1");
      expect(read(bytes.length, bytes + rest, sizes)?.forwarded).toBe(bytes);
    }),
  );
});

describe("a chunked body", () => {
  // Sizes of several digits, with every digit.
  const text = { maxLength: 300, size: "max", unit: "binary-ascii" } as const;
  const chunk = fc.string({ minLength: 1, ...text });

  const encode = (chunks: string[]) =>
    `${chunks.map((data) => `${data.length.toString(16)}\r\n${data}\r\n`).join("")}0\r\n\r\n`;

  test("has the same data when it is forwarded, and the same end, however it is cut", () => {
    fc.assert(
      fc.property(fc.array(chunk), parts, (chunks, sizes) => {
        const next = "GET / HTTP/1.1\r\n";
        const { forwarded, ...end } = read("chunked", encode(chunks) + next, sizes)!;
        expect(decode(forwarded)).toBe(chunks.join(""));
        expect(end).toEqual({ rest: next, isComplete: true });
      }),
    );
  });

  test("of many chunks that arrive together is forwarded as one chunk", () => {
    const data = "0123456789".repeat(300);
    const text = encode(data.split(""));
    expect(read("chunked", text)).toEqual({
      forwarded: encode([data]),
      rest: "",
      isComplete: true,
    });
  });

  test("of very many chunks, or long extensions, is read in parts, so that others have their turn", () => {
    const chunks = Array.from({ length: 4_000 }, (_, index) => String(index % 10));
    const extension = `;${"a".repeat(4_000)}`;
    for (const text of [
      encode(chunks),
      encode(chunks).replaceAll("1\r\n1", `1${extension}\r\n1`),
    ]) {
      const bytes = Buffer.from(text);
      const reader = new RequestBody({ body: "chunked", expectsContinue: false }, () => undefined);
      const forwarded: Uint8Array[][] = [];
      for (let at = 0; !reader.isComplete;) {
        const { forward, length } = reader.read(bytes.subarray(at))!;
        expect(length).toBeLessThanOrEqual(2 * FRAMING_TURN_MAX_BYTES);
        at += length;
        if (forward.length > 0) forwarded.push(forward);
      }
      // As one chunk, although others had their turn.
      expect(forwarded).toHaveLength(1);
      const data = decode(Buffer.concat(forwarded.flat()).toString("latin1"));
      expect(data).toBe(chunks.join(""));
    }
  });

  test("loses its extensions and trailers, however it is cut", () => {
    const text = "3;a=b\r\nabc\r\n0;c\r\nX-Trailer: a\r\nContent-Length: 5\r\n\r\n";
    fc.assert(
      fc.property(parts, (sizes) => {
        const { forwarded, ...end } = read("chunked", `${text}next`, sizes)!;
        expect(decode(forwarded)).toBe("abc");
        expect(end).toEqual({ rest: "next", isComplete: true });
      }),
    );
  });

  test.each([
    "\r\n",
    "g\r\n",
    "0x1\r\na\r\n",
    "-1\r\n",
    "@\r\n012345678\r\n",
    "`\r\n012345678\r\n",
    "1;a\x7f\r\na\r\n",
    "0000000000001\r\na\r\n",
    "+1\r\na\r\n",
    " 1\r\na\r\n",
    "1 \r\na\r\n",
    "1\na\n",
    "1\r\nab\r\n",
    "1\r\na\n",
    "1;a\nb\r\na\r\n",
    "0\r\n\n",
    "0\r\nX: a\n\r\n",
    "fffffffffffff\r\n",
  ])("is malformed: %j", (text) => {
    expect(read("chunked", text)).toBeNull();
    expect(
      read(
        "chunked",
        text,
        Array.from(text, () => 1),
      ),
    ).toBeNull();
  });

  test.each(["ff", "FF", "0000000000ff", "ff;\ta", `ff;${"a".repeat(4_096)}`])(
    "may begin with %s",
    (line) => {
      const data = "x".repeat(255);
      const twice = `${line}\r\n${data}\r\n`.repeat(2);
      const end = { forwarded: encode([data + data]), rest: "", isComplete: true };
      expect(read("chunked", `${twice}0\r\n\r\n`)).toEqual(end);
    },
  );

  test("is malformed when extensions or trailers are too long", () => {
    expect(read("chunked", `1;${"a".repeat(4_097)}\r\na\r\n`)).toBeNull();
    expect(read("chunked", `0\r\n${"X: a\r\n".repeat(2_000)}\r\n`)).toBeNull();
  });
});
