import { describe, expect, test } from "vitest";
import { CF_BLOB_HEADER } from "../../../../../shared/client-address.ts";
import {
  HEAD_MAX_FIELDS,
  QUERY_MAX_PARAMETERS,
  parseRequestHead,
  type RequestHead,
} from "../../../../../self-host/front-proxy/http1/request-head.ts";

const OWN = `${CF_BLOB_HEADER}: {"clientIp":"192.0.2.1"}\r\n`;

const VERSION = "Sec-WebSocket-Version: 13";
const KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
const UPGRADE = ["Connection: upgrade", "Upgrade: websocket"];

const parse = (...lines: string[]) => parseRequestHead(`${lines.join("\r\n")}\r\n\r\n`, OWN);
const parseValid = (...lines: string[]) => {
  const head = parse(...lines);
  expect(head).toBeTypeOf("object");
  return head as RequestHead;
};

describe("a head", () => {
  test("is forwarded unchanged, with the address of the visitor", () => {
    const { bytes } = parseValid("GET /a?b=%00 HTTP/1.1", "Host: a", "X-Odd_Name:  b\t", "y:\xff");
    expect(bytes.toString("latin1")).toBe(
      `GET /a?b=%00 HTTP/1.1\r\n${OWN}Host: a\r\nX-Odd_Name:  b\t\r\ny:\xff\r\n\r\n`,
    );
  });

  test.each([CF_BLOB_HEADER, CF_BLOB_HEADER.toUpperCase()])(
    "loses a visitor's own %s, wherever it is",
    (name) => {
      const forged = `${name}: {"clientIp":"203.0.113.9"}`;
      const { bytes } = parseValid("GET / HTTP/1.1", forged, "Host: a", forged, forged);
      expect(bytes.toString("latin1")).toBe(`GET / HTTP/1.1\r\n${OWN}Host: a\r\n\r\n`);
    },
  );

  test.each([
    [0, []],
    [0, ["Content-Length: 0"]],
    [12, ["content-length:12"]],
    [12, ["Content-Length: \t12 "]],
    ["chunked", ["Transfer-Encoding: chunked"]],
    ["chunked", ["TRANSFER-ENCODING: Chunked"]],
  ])("says that a body of %s bytes follows: %j", (body, lines) => {
    expect(parseValid("POST / HTTP/1.1", "Host: a", ...lines).body).toBe(body);
  });

  test.each([
    [true, ["Connection: Upgrade", "Upgrade: websocket"]],
    [true, ["Connection: upgrade", "Upgrade: websocket", "Content-Length: 0"]],
    [false, ["Connection: upgrade", "Upgrade: h2c", "Content-Length: 5"]],
    [true, ["Connection: keep-alive, upgrade", "Upgrade: websocket"]],
    [true, ["Connection: keep-alive", "Connection: UPGRADE", "Upgrade: websocket"]],
    [false, ["Connection: Upgrade"]],
    [false, ["Upgrade: websocket"]],
    [false, ["Connection: noupgrade", "Upgrade: websocket"]],
    [false, ["Connection: upgrade", "Upgrade: websocket", "Transfer-Encoding: chunked"]],
    [false, ["Upgrade: websocket", "Content-Length: 5"]],
  ])("asks for another protocol: %s for %j", (isUpgrade, lines) => {
    const handshake = ["Host: a", VERSION, KEY, ...lines];
    expect(parseValid("GET / HTTP/1.1", ...handshake).isUpgrade).toBe(isUpgrade);
  });

  test.each([
    ["http://shop.example:80/a?b", "shop.example:80", "/a?b"],
    ["HTTPS://SHOP.example", "SHOP.example", "/"],
    ["http://shop.example?b=http://other.example/", "shop.example", "/?b=http://other.example/"],
  ])("with the target of a proxy is for that host: %s", (target, authority, path) => {
    const head = parseValid(`GET ${target} HTTP/1.1`, "A: b", "host: other.example", "C: d");
    expect(head.host).toBe("shop.example");
    expect(head.bytes.toString("latin1")).toBe(
      `GET ${path} HTTP/1.1\r\n${OWN}Host: ${authority}\r\nA: b\r\nC: d\r\n\r\n`,
    );
  });

  test.each([
    [true, "POST / HTTP/1.1", ["Expect: 100-Continue"]],
    [false, "POST / HTTP/1.0", ["Expect: 100-continue"]],
    [false, "POST / HTTP/1.1", ["Expect: other"]],
    [false, "POST / HTTP/1.1", []],
  ])("says whether the visitor may wait with the body: %s for %s %j", (expected, line, lines) => {
    const head = parseValid(line, "Host: a", "Content-Length: 1", ...lines);
    expect(head.expectsContinue).toBe(expected);
  });

  test.each([
    [true, "GET / HTTP/1.1", ["Connection: close"]],
    [true, "GET / HTTP/1.1", ["Connection: TE, Close"]],
    [true, "GET / HTTP/1.0", ["Connection: keep-alive"]],
    [false, "GET / HTTP/1.1", ["Connection: keep-alive"]],
    [false, "GET / HTTP/1.1", ["Connection: closed, x-close"]],
    [false, "GET / HTTP/1.1", []],
  ])("is the last of its connection: %s for %s with %j", (isLast, line, lines) => {
    expect(parseValid(line, "Host: a", ...lines).isLast).toBe(isLast);
  });

  test.each([
    ["GET / HTTP/1.1", ["UPGRADE: websocket"]],
    ["GET / HTTP/1.1", ["Upgrade: websocket", "Upgrade: h2c", "Content-Length: 5"]],
    ["GET / HTTP/1.1", ["Connection: upgrade", "Upgrade: h2c", "Content-Length: 5"]],
    ["GET / HTTP/1.1", ["Connection: upgrade", "Upgrade: websocket", "Transfer-Encoding: chunked"]],
    ["GET / HTTP/1.0", ["Connection: upgrade", "Upgrade: websocket"]],
    ["POST / HTTP/1.1", ["Connection: upgrade", "Upgrade: websocket"]],
  ])("asks workerd for no other protocol than it asks for here: %s with %j", (line, lines) => {
    const { isUpgrade, bytes } = parseValid(line, "Host: a", ...lines, "A: b");
    expect([isUpgrade, bytes.toString()]).toEqual([false, expect.not.stringMatching(/upgrade:/i)]);
    expect(bytes.toString()).toMatch(/Host: a\r\n[^]*A: b\r\n\r\n$/);
  });

  test("has no length when it asks for a WebSocket", () => {
    const lines = ["Connection: upgrade", "Content-Length: 0", "Upgrade: websocket", "A: b"];
    const { body, bytes } = parseValid("GET / HTTP/1.1", "Host: a", VERSION, KEY, ...lines);
    expect([body, bytes.toString().includes("Content-Length")]).toEqual([0, false]);
    expect(bytes.toString()).toMatch(/Connection: upgrade\r\nUpgrade: websocket\r\nA: b\r\n\r\n$/);
  });
});

test("a WebSocket's handshake is forwarded without spaces that workerd would read as a part of it", () => {
  const { bytes } = parseValid("GET / HTTP/1.1", "Host: a", `${VERSION} \t`, `${KEY} `, ...UPGRADE);
  const lines = [VERSION, KEY, ...UPGRADE].join("\r\n");
  expect(bytes.toString()).toBe(`GET / HTTP/1.1\r\n${OWN}Host: a\r\n${lines}\r\n\r\n`);
});

/** Requests that two programs could read in different ways. */
describe("a request that workerd has not answered is sent again", () => {
  test.each([
    [true, "GET / HTTP/1.1", []],
    [true, "HEAD / HTTP/1.1", []],
    [true, "OPTIONS / HTTP/1.1", ["Content-Length: 0"]],
    [false, "POST / HTTP/1.1", []],
    [false, "DELETE / HTTP/1.1", ["Content-Length: 0"]],
    [false, "GET / HTTP/1.1", ["Content-Length: 1"]],
    [false, "GET / HTTP/1.1", ["Transfer-Encoding: chunked"]],
  ])("%s: %s %j", (canRepeat, firstLine, fields) => {
    const head = parseValid(firstLine, "Host: shop.example", ...fields);
    expect(head.canRepeat).toBe(canRepeat);
    for (const field of fields) expect(head.bytes.toString("latin1")).toContain(`\r\n${field}\r\n`);
  });
});

describe("a head is refused", () => {
  test.each([
    ["two lengths", "Content-Length: 1", "Content-Length: 2"],
    ["the same length twice", "Content-Length: 1", "Content-Length: 1"],
    ["a list of lengths", "Content-Length: 1, 1"],
    ["a signed length", "Content-Length: +1"],
    ["a hexadecimal length", "Content-Length: 0x1"],
    ["an empty length", "Content-Length:"],
    ["a length beyond exact numbers", "Content-Length: 12345678901234567"],
    ["a length and an encoding", "Content-Length: 1", "Transfer-Encoding: chunked"],
    ["two encodings", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"],
    ["a space before the colon", "Content-Length : 1"],
    ["a folded line", "X: a", " Content-Length: 1"],
    ["a line without a colon", "Content-Length"],
    ["an empty name", ": a"],
    ["a bare line feed", "X: a\nContent-Length: 1"],
    ["a bare carriage return", "X: a\rContent-Length: 1"],
    ["a zero byte", "X: a\0b"],
    ["a name with a character beyond ASCII", "X\xa0: a"],
  ])("with %s", (_, ...lines) => {
    expect(parse("POST / HTTP/1.1", "Host: a", ...lines)).toBe("malformed");
  });

  test("when it asks for a WebSocket and has a body", () => {
    const lines = [...UPGRADE, VERSION, KEY, "Content-Length: 5"];
    expect(parse("GET / HTTP/1.1", "Host: a", ...lines)).toBe("malformed");
  });

  test.each([
    ["invalid_handshake", "without a version", [KEY]],
    ["invalid_handshake", "with two versions", [VERSION, VERSION, KEY]],
    ["unsupported_websocket_version", "with an old version", ["Sec-WebSocket-Version: 12", KEY]],
    ["unsupported_websocket_version", "with an empty version", ["Sec-WebSocket-Version:", KEY]],
    ["invalid_handshake", "without a key", [VERSION]],
    ["invalid_handshake", "with two keys", [VERSION, KEY, KEY]],
    ["invalid_handshake", "with a short key", [VERSION, "Sec-WebSocket-Key: dGhl"]],
    ["invalid_handshake", "with a key of 17 bytes", [VERSION, KEY.replace("==", "A=")]],
    ["invalid_handshake", "with a key in base64url", [VERSION, KEY.replace("dG", "d_")]],
  ])("as %s when it asks for a WebSocket %s", (error, _, lines) => {
    expect(parse("GET / HTTP/1.1", "Host: a", ...lines, ...UPGRADE)).toBe(error);
    // It asks for none.
    parseValid("GET / HTTP/1.1", "Host: a", ...lines, "Upgrade: websocket");
    parseValid("GET / HTTP/1.1", "Host: a", ...lines, "Connection: upgrade", "Upgrade: h2c");
  });

  test.each([
    "GET / HTTP/1.2",
    "GET / HTTP/2.0",
    "GET /",
    "GET  / HTTP/1.1",
    "GET / HTTP/1.1 ",
    " GET / HTTP/1.1",
    "GET /a b HTTP/1.1",
    "G(T / HTTP/1.1",
    "GET /\x7f HTTP/1.1",
  ])("whose first line is %j", (line) => {
    expect(parse(line, "Host: a")).toBe("malformed");
  });

  test("with an encoding other than chunked", () => {
    for (const value of ["gzip, chunked", "xchunked", "chunked, chunked", "identity", '"chunked"'])
      expect(parse("POST / HTTP/1.1", "Host: a", `Transfer-Encoding: ${value}`)).toBe(
        "unsupported_encoding",
      );
  });

  test("with more fields than workerd should store", () => {
    const fields = Array.from({ length: HEAD_MAX_FIELDS }, (_, n) => `z${n}:`);
    fields[0] = "Host: a";
    parseValid("GET / HTTP/1.1", ...fields);
    expect(parse("GET / HTTP/1.1", ...fields, "z:")).toBe("too_many_fields");
  });

  test("with more parameters than workerd should split", () => {
    const query = "&".repeat(QUERY_MAX_PARAMETERS - 1);
    parseValid(`GET /?${query} HTTP/1.1`, "Host: a");
    expect(parse(`GET /?${query}& HTTP/1.1`, "Host: a")).toBe("too_many_parameters");
  });

  test("without a Host, or with several", () => {
    expect(parse("GET / HTTP/1.1")).toBe("invalid_host");
    expect(parse("GET / HTTP/1.1", "Host: a", "host: a")).toBe("invalid_host");
    expect(parse("GET / HTTP/1.0")).toBe("invalid_host");
    expect(parse("GET / HTTP/1.0", "Host:")).toBe("invalid_host");
    expect(parse("GET / HTTP/1.0", "Host: a")).toBeTypeOf("object");
    expect(parse("GET http://a/ HTTP/1.0")).toMatchObject({ host: "a", target: "/" });
  });

  test.each(["http://", "http:///a", "http://ann:secret@a/", "http://a b/", "http://a#b/"])(
    "with the host of the target %s",
    (target) => {
      expect(parse(`GET ${target} HTTP/1.1`, "Host: a")).toMatch(/invalid_host|malformed/);
    },
  );

  test("that asks for a tunnel", () => {
    expect(parse("CONNECT a:443 HTTP/1.1", "Host: a:443")).toBe("connect");
  });

  test.each(["ftp://a/", "http:/a", "a:443", "*", "a"])("with the target %s", (target) => {
    for (const method of ["GET", "OPTIONS", "POST"])
      expect(parse(`${method} ${target} HTTP/1.1`, "Host: a")).toBe("malformed");
  });

  test("in HTTP/1.0 with chunks, which it does not have", () => {
    expect(parse("POST / HTTP/1.0", "Host: a", "Transfer-Encoding: chunked")).toBe("malformed");
  });
});
