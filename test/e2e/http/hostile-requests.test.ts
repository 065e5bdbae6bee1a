/** Requests that try to confuse the service or a local server about where a message ends or where it was sent. */
import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  OK,
  startRawOrigin,
  type OriginRequest,
  type RawOrigin,
} from "../../harness/tunnel/origin.ts";
import { dial, exchange, findHeader } from "../../harness/tunnel/raw-http.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";

let stack: Stack;
let origin: RawOrigin;
let host: string;
beforeAll(async () => {
  [stack, origin] = await Promise.all([startStack(), startRawOrigin(() => OK)]);
  await stack.expose({ port: origin.port, subdomain: "hostile" });
  host = `hostile.localhost:${stack.server.port}`;
});
afterAll(async () => {
  await stack.stop();
  await origin.stop();
});
beforeEach(() => {
  origin.requests.length = 0;
});

const send = (lines: string[], body = "", target = "/", method = "POST") =>
  exchange(
    stack.server.port,
    `${method} ${target} HTTP/1.1\r\n${[`Host: ${host}`, ...lines].join("\r\n")}\r\n\r\n${body}`,
  );

/** Sends a request, and another one on a new connection. @returns what has arrived of the first one, which is answered. */
async function sendBefore(lines: string[], body: string): Promise<OriginRequest[]> {
  const socket = await dial(stack.server.port);
  const head = ["POST / HTTP/1.1", `Host: ${host}`, ...lines].join("\r\n");
  socket.on("error", () => undefined);
  const answered = once(socket, "data");
  socket.write(`${head}\r\n\r\n${body}`);
  await answered;
  expect((await send([], "", "/next", "GET")).status).toBe(200);
  socket.destroy();
  return origin.requests.splice(0).filter(({ target }) => target !== "/next");
}

describe("the end of a request's body is not disputed:", () => {
  const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";
  const CHUNKED = `0\r\n\r\n${SMUGGLED}`;

  test.each<[string, string[]]>([
    ["two lengths", ["Content-Length: 5", "Content-Length: 6"]],
    ["a list of lengths", ["Content-Length: 5, 6"]],
    ["a signed length", ["Content-Length: +5"]],
    ["a negative length", ["Content-Length: -5"]],
    ["a hexadecimal length", ["Content-Length: 0x5"]],
    ["a length with a space", ["Content-Length : 5"]],
    ["a folded length", ["Content-Length:", " 5"]],
    ["a length and chunks", ["Content-Length: 5", "Transfer-Encoding: chunked"]],
    ["chunks and a length", ["Transfer-Encoding: chunked", "Content-Length: 5"]],
    ["an unknown encoding", ["Transfer-Encoding: xchunked", "Content-Length: 5"]],
    ["an encoding before another", ["Transfer-Encoding: chunked, identity", "Content-Length: 5"]],
    ["an encoding with a space", ["Transfer-Encoding : chunked", "Content-Length: 5"]],
    ["an encoding with a tab", ["Transfer-Encoding:\tchunked", "Content-Length: 5"]],
    ["an encoding in capitals", ["transfer-encoding: CHUNKED", "Content-Length: 5"]],
    ["two encodings", ["Transfer-Encoding: chunked", "Transfer-Encoding: identity"]],
    ["an encoding behind a line feed", ["X: y\nTransfer-Encoding: chunked", "Content-Length: 5"]],
    ["an encoding that Connection names", ["Connection: content-length", "Content-Length: 5"]],
    ["an encoding with an underscore", ["Transfer_Encoding: chunked", "Content-Length: 5"]],
  ])("%s", async (_, lines) => {
    for (const body of [CHUNKED, `hello${SMUGGLED}`]) {
      const requests = await sendBefore(lines, body);
      for (const { headers, target, body: received } of requests) {
        const names = headers.map(([name]) => name.toLowerCase().replaceAll("_", "-"));
        const framing = names.filter((name) => /^(content-length|transfer-encoding)$/.test(name));
        expect(framing.length).toBeLessThanOrEqual(1);
        expect([target, received.includes("smuggled")]).toEqual(["/", false]);
      }
    }
  });
});

/** A proxy in front of the server forwards it as one request: what follows the head has forwarding headers that a visitor wrote. */
test("what a WebSocket handshake declares as its body is not the next request", async () => {
  const body = `GET /smuggled HTTP/1.1\r\nHost: ${host}\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n`;
  const lines = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    `Content-Length: ${body.length}`,
  ];
  expect((await send(lines, body, "/", "GET")).status).toBe(400);
  expect((await send([], "", "/next", "GET")).status).toBe(200);
  expect(origin.requests.map(({ target }) => target)).toEqual(["/next"]);
});

test.each([
  [400, "no version", ["Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]],
  [
    426,
    "an old version",
    ["Sec-WebSocket-Version: 8", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="],
  ],
  [400, "no key", ["Sec-WebSocket-Version: 13"]],
])(
  "is %i for a WebSocket handshake with %s, which the local server does not get",
  async (status, _, lines) => {
    for (const [name, target] of [
      [host, "/"],
      [`localhost:${stack.server.port}`, "/inspector/ws"],
    ]) {
      const upgrade = [`Host: ${name}`, "Connection: Upgrade", "Upgrade: websocket", ...lines];
      const answer = await exchange(
        stack.server.port,
        `GET ${target} HTTP/1.1\r\n${upgrade.join("\r\n")}\r\n\r\n`,
      );
      expect([answer.status, findHeader(answer.headers, "underpass-error")]).toEqual([
        status,
        "invalid_request",
      ]);
      expect(JSON.parse(answer.body.toString())).toMatchObject({ error: "invalid_request" });
      expect(findHeader(answer.headers, "sec-websocket-version")).toBe(
        status === 426 ? "13" : undefined,
      );
    }
    expect(origin.requests).toEqual([]);
  },
);

/** workerd opens a WebSocket for the field `Upgrade` alone, and would read the body as frames. */
test("a request without all of a WebSocket handshake opens no WebSocket", async () => {
  const handshake = [
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  ];
  for (const [method, lines] of [
    ["GET", []],
    ["GET", ["Connection: close"]],
    ["POST", ["Connection: Upgrade"]],
  ] as const) {
    const sent = [...handshake, ...lines, "Content-Length: 5"];
    expect([method, lines, (await send(sent, "hello", "/", method)).status]).toEqual([
      method,
      lines,
      200,
    ]);
  }
  expect(origin.requests.map(({ method, body }) => [method, body.toString()])).toEqual([
    ["GET", "hello"],
    ["GET", "hello"],
    ["POST", "hello"],
  ]);
});

/** Its answer would show headers that the scripts of a page can't read. */
test("TRACE is refused", async () => {
  for (const lines of [[], ["Content-Length: 5"]]) {
    const answer = await send(
      ["Cookie: a=1", ...lines],
      "hello".slice(0, 5 * lines.length),
      "/",
      "TRACE",
    );
    expect([answer.status, findHeader(answer.headers, "underpass-error")]).toEqual([
      405,
      "method_not_allowed",
    ]);
    expect(findHeader(answer.headers, "allow")).toContain("GET, HEAD, POST");
  }
  // Requests of earlier tests, which waited for no answer, may arrive now. They have no cookie.
  expect(origin.requests.filter(({ headers }) => findHeader(headers, "cookie"))).toEqual([]);
});

test("the host that a local server builds links of has no case, root or port of the visitor's", async () => {
  const port = String(stack.server.port);
  for (const [written, canonical] of [
    [`HOSTILE.localhost:${port}`, host],
    [`hostile.LOCALHOST.:${port}`, host],
    ["hostile.localhost:1", "hostile.localhost"],
    ["hostile.localhost:", "hostile.localhost"],
    ["Hostile.Localhost", "hostile.localhost"],
  ] as const) {
    await exchange(stack.server.port, `GET / HTTP/1.1\r\nHost: ${written}\r\n\r\n`);
    const { headers } = origin.requests.at(-1)!;
    expect([written, findHeader(headers, "x-forwarded-host")]).toEqual([written, canonical]);
    expect(findHeader(headers, "host")).toBe(written);
  }
});
