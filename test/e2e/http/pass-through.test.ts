import { gzipSync, brotliCompressSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compare, type Row } from "../../harness/tunnel/comparison.ts";
import { startRawOrigin, type RawOrigin, type Respond } from "../../harness/tunnel/origin.ts";
import { createRandom } from "../../harness/random.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";

let stack: Stack;
let origin: RawOrigin;
let host: string;

beforeAll(async () => {
  [stack, origin] = await Promise.all([startStack(), startRawOrigin()]);
  await stack.expose({ port: origin.port, subdomain: "mirror" });
  host = `mirror.localhost:${stack.server.port}`;
});
afterAll(async () => {
  await stack.stop();
  await origin.stop();
});

const compareBoth = (row: Row) => compare(row, { origin, port: stack.server.port, host });

async function expectSame(row: Row): Promise<void> {
  const { direct, tunnelled } = await compareBoth(row);
  expect(tunnelled).toEqual(direct);
}

const answer = (lines: string[], body: Buffer | string = "", status = "200 OK"): Respond => {
  const head = [`HTTP/1.1 ${status}`, ...lines, "", ""].join("\r\n");
  return () => Buffer.concat([Buffer.from(head, "latin1"), Buffer.from(body)]);
};

function chunked(body: Buffer, size: number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; at += size) {
    const part = body.subarray(at, at + size);
    parts.push(Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n"));
  }
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")]);
}

/** All that the platform's listener supports, without TRACE, which the edge refuses. */
const METHODS =
  "GET HEAD POST PUT PATCH DELETE OPTIONS QUERY PURGE COPY MOVE LOCK UNLOCK MKCOL PROPFIND PROPPATCH SEARCH REPORT " +
  "ACL MERGE CHECKOUT MKACTIVITY NOTIFY SUBSCRIBE UNSUBSCRIBE";
/** An empty body of these methods has a `Content-Length`, and that of others has none: the agent's HTTP library. */
const METHODS_WITH_LENGTH = new Set(["POST", "PUT", "PATCH", "QUERY", "PROPFIND", "PROPPATCH"]);

describe("a method passes", () => {
  const type = "Content-Type: application/json";
  const inChunks = "Transfer-Encoding: chunked";
  test.each<[string, Row]>([
    ["without a body", {}],
    ["without a body, but with a type", { lines: [type] }],
    ["with an empty body", { lines: [type, "Content-Length: 0"] }],
    ["with an empty body in chunks", { lines: [inChunks], body: "0\r\n\r\n" }],
    ["with a body", { lines: ["Content-Length: 5"], body: "hello" }],
    ["with a body of a type", { lines: [type, "Content-Length: 5"], body: "hello" }],
    ["with a body in chunks", { lines: [type, inChunks], body: chunked(Buffer.from("hello"), 2) }],
  ])("%s", async (_, row) => {
    for (const method of METHODS.split(" ")) {
      const { direct, tunnelled } = await compareBoth({ method, ...row });
      if (tunnelled.seen?.body === "") {
        const length = METHODS_WITH_LENGTH.has(method) ? "0" : undefined;
        expect([method, tunnelled.seen.headers["content-length"]]).toEqual([method, length]);
        delete tunnelled.seen.headers["content-length"];
        delete direct.seen!.headers["content-length"];
      }
      expect([method, tunnelled]).toEqual([method, direct]);
    }
  });
  test("with an empty Content-Type, which is removed", async () => {
    const lines = ["Content-Type:", "Content-Length: 5"];
    const { tunnelled } = await compareBoth({ method: "REPORT", lines, body: "hello" });
    expect(tunnelled.seen).toMatchObject({ method: "REPORT", body: "hello" });
    expect(tunnelled.seen!.headers).not.toHaveProperty("content-type");
  });
  test("but not one that the platform's listener does not support", async () => {
    for (const method of ["BIND", "LINK", "M-SEARCH", "MKCALENDAR", "FOO", "get"]) {
      const { tunnelled } = await compareBoth({ method });
      expect([method, tunnelled.answer.status, tunnelled.seen]).toEqual([method, 405, null]);
    }
  });
});

describe("a target passes byte for byte:", () => {
  test.each([
    "/a%2fb%2Fc",
    "/%zz%",
    "/?",
    "/??a=b?c",
    "/?a=%20+&a[]=1&b",
    "/;a=b;c",
    "/a\\b",
    "/a|b",
    "/a'b(c)*!$,:=~",
    '/"<>^`{}',
    "/%C3%A9%F0%9F%98%80",
    "//",
    "//a//b//",
    "/...",
    "/.hidden",
    "/a.",
    "/..%2f..%2fetc",
    "/%2e%2e/x",
    "/http://elsewhere.test/x",
    `/${"x".repeat(8_000)}`,
    `/?${"q".repeat(8_000)}`,
  ])("%s", (target) => expectSame({ target }));

  test("except dot segments and fragments, which the platform's listener removes", async () => {
    const folded = { "/a/../b": "/b", "/a/./b": "/a/b", "/a#b": "/a" };
    for (const [target, expected] of Object.entries(folded))
      expect((await compareBoth({ target })).tunnelled.seen?.target).toBe(expected);
  });
});

test.each([
  ["for the server as a whole", { method: "OPTIONS", target: "*" }, 400],
  ["for another host", { target: "http://elsewhere.test/x" }, 404],
])("a target %s does not reach the tunnel of the Host header", async (_, row, status) => {
  const { tunnelled } = await compareBoth(row);
  expect([tunnelled.answer.status, tunnelled.seen]).toEqual([status, null]);
});

describe("no target leads to another server", () => {
  test.each(["//PLACE/x", "/\\PLACE/x", "/@PLACE", "///PLACE", "/http://PLACE/", "//user@PLACE/"])(
    "%s",
    async (pattern) => {
      const canary = await startRawOrigin();
      const target = pattern.replace("PLACE", `127.0.0.1:${canary.port}`);
      await expectSame({ target });
      expect(canary.requests).toEqual([]);
      await canary.stop();
    },
  );

  test("a redirect is forwarded and not followed", async () => {
    const canary = await startRawOrigin();
    for (const status of [
      "301 Moved",
      "302 Found",
      "303 See Other",
      "307 Temporary",
      "308 Permanent",
    ]) {
      const location = `Location: http://127.0.0.1:${canary.port}/`;
      await expectSame({ respond: answer([location, "Content-Length: 0"], "", status) });
    }
    expect(canary.requests).toEqual([]);
    await canary.stop();
  });
});

describe("request headers pass:", () => {
  const rows: Record<string, string[]> = {
    "all kinds that browsers send": [
      "Accept: text/html,application/xhtml+xml,*/*;q=0.8",
      "Accept-Encoding: gzip, deflate, br, zstd",
      "Accept-Language: de,en-US;q=0.7",
      "Cookie: a=1; b=2",
      "User-Agent: Mozilla/5.0",
      "Sec-Fetch-Mode: navigate",
      'If-None-Match: "abc"',
      "If-Modified-Since: Wed, 21 Oct 2015 07:28:00 GMT",
      "Range: bytes=0-99",
      "Authorization: Basic YTpi",
      "Origin: http://elsewhere.test",
      "Referer: http://elsewhere.test/x",
      "Cache-Control: no-cache",
    ],
    "repeated names": ["X-Many: 1", "X-Many: 2", "x-many: 3"],
    "empty values": ["X-Empty:"],
    "UTF-8 values": [`X-Name: ${Buffer.from("Übung 日本 😀").toString("latin1")}`],
    "a hundred lines": Array.from({ length: 100 }, (_, i) => `X-Line-${i}: ${i}`),
    "a line of 30 KB": [`X-Large: ${"v".repeat(30_000)}`],
    "names that look like the service's own": ["underpass-admission: {}", "underpass-error: x"],
  };
  test.each(Object.entries(rows))("%s", (_, lines) => expectSame({ lines }));

  test("except Latin-1 values, which the platform reads as broken UTF-8", async () => {
    const { tunnelled } = await compareBoth({ lines: ["X-Name: caf\xe9"] });
    const value = Buffer.from(tunnelled.seen!.headers["x-name"]!, "latin1").toString();
    expect(value).toBe("caf\ufffd");
  });

  test("and Expect is answered by the service", async () => {
    const row = {
      method: "POST",
      lines: ["Expect: 100-continue", "Content-Length: 2"],
      body: "hi",
    };
    const { tunnelled } = await compareBoth(row);
    expect(tunnelled.seen?.body).toBe("hi");
    expect(tunnelled.seen?.headers).not.toHaveProperty("expect");
  });

  test("and no header of the visitor sets the visitor's address", async () => {
    const lines = ["X-Forwarded-For: 6.6.6.6", "X-Forwarded-Host: evil", "Forwarded: for=6.6.6.6"];
    const { tunnelled } = await compareBoth({
      lines: [...lines, "X-Real-IP: 6.6.6.6", "Connection: close"],
    });
    expect(origin.requests[0]!.headers).toContainEqual(["x-forwarded-for", "127.0.0.1"]);
    expect(origin.requests[0]!.headers).toContainEqual(["x-forwarded-host", host]);
    expect(origin.requests[0]!.headers).toContainEqual(["x-forwarded-proto", "http"]);
    expect(JSON.stringify(tunnelled.seen)).not.toContain("6.6.6.6");
  });
});

describe("response headers pass:", () => {
  const rows: Record<string, string[]> = {
    "cookies separately and in order": [
      "Set-Cookie: b=2; Path=/; HttpOnly",
      "Set-Cookie: a=1, still=a; Expires=Wed, 21 Oct 2015 07:28:00 GMT",
      "Set-Cookie: b=3",
    ],
    "caching and validation": ['ETag: W/"x"', "Cache-Control: public, max-age=1", "Vary: a, b"],
    "repeated names": ["X-Many: 1", "X-Many: 2"],
    "empty values": ["X-Empty:"],
    "UTF-8 values": [`X-Name: ${Buffer.from("Übung 日本 😀").toString("latin1")}`],
    "a hundred lines": Array.from({ length: 100 }, (_, i) => `X-Line-${i}: ${i}`),
    "a line of 30 KB": [`X-Large: ${"v".repeat(30_000)}`],
    "security policies": [
      "Content-Security-Policy: default-src 'self'",
      "Strict-Transport-Security: max-age=1",
    ],
    "a server's name and date": ["Server: mine/1.0", "Date: Wed, 21 Oct 2015 07:28:00 GMT"],
    CORS: ["Access-Control-Allow-Origin: *", "Access-Control-Allow-Headers: x, y"],
  };
  test.each(Object.entries(rows))("%s", (_, lines) =>
    expectSame({ respond: answer([...lines, "Content-Length: 2"], "ok") }),
  );

  test("and Latin-1 values as UTF-8", async () => {
    const { tunnelled } = await compareBoth({
      respond: answer(["X-Name: caf\xe9", "Content-Length: 2"], "ok"),
    });
    expect(Buffer.from(tunnelled.answer.headers["x-name"]!, "latin1").toString()).toBe("café");
  });

  test("except those of one connection", async () => {
    const lines = [
      "Connection: x-hop, keep-alive",
      "X-Hop: 1",
      "Keep-Alive: timeout=9",
      "X-End: 1",
    ];
    const { tunnelled } = await compareBoth({
      respond: answer([...lines, "Content-Length: 2"], "ok"),
    });
    expect(tunnelled.answer.headers).toEqual({ "content-length": "2", "x-end": "1" });
  });
});

describe("a status passes:", () => {
  test.each([
    "200 OK",
    "201 Created",
    "207 Multi",
    "299 Own",
    "400 Bad",
    "401 No",
    "404 Not",
    "418 Tea",
  ])("%s", (status) => expectSame({ respond: answer(["Content-Length: 2"], "ok", status) }));
  test.each(["500 No", "502 Mine", "503 Mine", "504 Mine", "599 Own"])("%s", (status) =>
    expectSame({ respond: answer(["Content-Length: 2"], "ok", status) }),
  );

  test.each(["204 No Content", "304 Not Modified"])("%s without a body", (status) =>
    expectSame({ respond: answer(['ETag: "x"'], "", status) }),
  );

  test("HEAD with the length of GET", () =>
    expectSame({ method: "HEAD", respond: answer(["Content-Length: 12345"]) }));

  test("a part of a file", () =>
    expectSame({
      lines: ["Range: bytes=0-4"],
      respond: answer(["Content-Length: 5", "Content-Range: bytes 0-4/10"], "01234", "206 Part"),
    }));

  test("without interim responses", async () => {
    const respond: Respond = () =>
      "HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    await expectSame({ respond });
  });

  const failures: Record<string, Respond> = {
    "a status that HTTP does not have": answer(["Content-Length: 0"], "", "999 Odd"),
    "a header name that HTTP does not have": answer(["X Odd: 1", "Content-Length: 0"]),
    "a NUL in a header": answer(["X-Odd: a\0b", "Content-Length: 0"]),
    "two lengths": answer(["Content-Length: 1", "Content-Length: 2"], "ok"),
    "another protocol": () => "SSH-2.0-OpenSSH_9.2\r\n",
    nothing: (_, socket) => void socket.destroy(),
    "half a head": (_, socket) => void socket.end("HTTP/1.1 200 OK\r\ncontent-"),
  };
  test.each(Object.entries(failures))(
    "a response with %s becomes 502 origin_failed",
    async (_, respond) => {
      origin.respond = respond;
      const { status, headers } = await stack.visit("mirror");
      expect([status, Object.fromEntries(headers)["underpass-error"]]).toEqual([
        502,
        "origin_failed",
      ]);
    },
  );
});

describe("a body passes", () => {
  const random = createRandom(21);
  const KIB = 1024;
  const sizes = [0, 1, 65_535, 65_536, 65_537, 1024 * KIB, 5 * 1024 * KIB];
  const bodies = sizes.map((size) => Buffer.from(random.bytes(size)));

  test.each(bodies.map((body) => [body.length, body] as const))(
    "of %i bytes up, by length",
    (length, body) => expectSame({ method: "POST", lines: [`Content-Length: ${length}`], body }),
  );
  test.each(bodies.map((body) => [body.length, body] as const))(
    "of %i bytes up, in chunks",
    async (_, body) => {
      const lines = ["Transfer-Encoding: chunked"];
      const { direct, tunnelled } = await compareBoth({
        method: "POST",
        lines,
        body: chunked(body, 10_000),
      });
      // An empty body may get a length.
      delete tunnelled.seen!.headers["content-length"];
      expect(tunnelled).toEqual(direct);
    },
  );
  test.each(bodies.map((body) => [body.length, body] as const))(
    "of %i bytes down, by length",
    (length, body) => expectSame({ respond: answer([`Content-Length: ${length}`], body) }),
  );
  test.each(bodies.map((body) => [body.length, body] as const))(
    "of %i bytes down, in chunks",
    async (_, body) => {
      const respond = answer(["Transfer-Encoding: chunked"], chunked(body, 10_000));
      const { direct, tunnelled } = await compareBoth({ respond });
      // A short body that is complete when its head arrives gets a length instead.
      delete tunnelled.answer.headers["content-length"];
      expect(tunnelled).toEqual(direct);
    },
  );

  test("up to the end of the connection, when it has no length", async () => {
    const respond: Respond = (_, socket) =>
      void socket.end("HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\nuntil the end");
    const { direct, tunnelled } = await compareBoth({ respond });
    expect(tunnelled.answer.body).toEqual(direct.answer.body);
  });

  test.each([
    ["gzip", gzipSync("hello ".repeat(100))],
    ["br", brotliCompressSync("hello ".repeat(100))],
    ["unheard-of", Buffer.from("opaque")],
  ])("encoded as %s unchanged", (encoding, body) =>
    expectSame({
      lines: ["Accept-Encoding: gzip, br"],
      respond: answer([`Content-Encoding: ${encoding}`, `Content-Length: ${body.length}`], body),
    }),
  );

  test("uncompressed, although the visitor accepts compression", () =>
    expectSame({
      lines: ["Accept-Encoding: gzip"],
      respond: answer(["Content-Type: text/html", "Content-Length: 10000"], "a".repeat(10_000)),
    }));

  test("without its chunk extensions and trailers, both ways", async () => {
    const { tunnelled } = await compareBoth({
      method: "POST",
      lines: ["Transfer-Encoding: chunked", "Trailer: X-Sum"],
      body: "2;a=b\r\nhi\r\n0;c\r\nX-Sum: 1\r\n\r\n",
      respond: answer(
        ["Transfer-Encoding: chunked", "Trailer: X-Sum"],
        "2\r\nok\r\n0\r\nX-Sum: 2\r\n\r\n",
      ),
    });
    expect(tunnelled.seen?.body).toBe("hi");
    expect(tunnelled.answer.body).toBe("ok");
    expect(JSON.stringify(tunnelled)).not.toContain("x-sum");
  });
});
