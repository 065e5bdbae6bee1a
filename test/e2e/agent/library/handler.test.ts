/** A function as the local server: `expose({ fetch })`. */
import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import type { ExposedTunnel } from "../../../../agent/expose.ts";
import type { RequestHandler } from "../../../../agent/library/types.ts";
import { startStack, type Stack } from "../../../harness/server/stack.ts";
import { WAIT_OPTIONS } from "../../../harness/timeouts.ts";
import { dial, findHeader, getFraming, MessageReader } from "../../../harness/tunnel/raw-http.ts";

const NAME = "handler";
let stack: Stack;
let tunnel: ExposedTunnel;
let handler: RequestHandler;
let errors: unknown[];

beforeAll(async () => {
  stack = await startStack();
  tunnel = await stack.expose({ fetch: (request) => handler(request), subdomain: NAME });
  tunnel.events.on("handlerError", (error) => errors.push(error));
});
beforeEach(() => void (errors = []));
afterAll(() => stack.stop());

const visit = (path = "/", headers = "", method = "GET") =>
  stack.visit(NAME, path, headers, method);

/** Sends the head of a request, and returns the connection. */
async function openVisitor(method: string, ...lines: string[]) {
  const socket = await dial(stack.server.port);
  socket.on("error", () => undefined);
  const host = `Host: ${NAME}.localhost:${stack.server.port}`;
  socket.write([`${method} / HTTP/1.1`, host, ...lines, "", ""].join("\r\n"));
  return { socket, reader: new MessageReader(socket) };
}

describe("the function gets", () => {
  test("the public URL, the method and the headers", async () => {
    handler = ({ url, method, headers }) => Response.json([url, method, headers.get("x-a")]);
    const { body } = await visit("/a%2Fb/?c=%20d", "X-A: one\r\nX-A: two\r\n", "DELETE");
    expect(JSON.parse(body.toString())).toEqual([
      `${tunnel.url}/a%2Fb/?c=%20d`,
      "DELETE",
      "one, two",
    ]);
  });

  test("the public host also for a path that looks like another host", async () => {
    handler = ({ url }) => new Response(url);
    expect((await visit("//elsewhere.test/x")).body.toString()).toBe(
      `${tunnel.url}//elsewhere.test/x`,
    );
  });

  test("an upload chunk by chunk, while it answers", async () => {
    handler = ({ body }) => new Response(body);
    const { socket, reader } = await openVisitor("POST", "Transfer-Encoding: chunked");
    socket.write("3\r\none\r\n");
    const head = await reader.head();
    const framing = getFraming(head?.headers ?? [], "POST", 200);
    expect((await reader.chunk(framing))?.toString()).toBe("one");
    socket.write("3\r\ntwo\r\n0\r\n\r\n");
    expect((await reader.chunk(framing))?.toString()).toBe("two");
    expect(await reader.chunk(framing)).toBeNull();
    socket.destroy();
  });

  test("the end of a visit as an aborted signal", async () => {
    const aborted = new Promise<void>((resolve) => {
      handler = ({ signal }) =>
        new Promise((_, reject) => {
          signal.addEventListener("abort", () => (resolve(), reject(new Error("late"))));
          called();
        });
    });
    let called = (): void => undefined;
    const isCalled = new Promise<void>((resolve) => (called = resolve));
    const { socket } = await openVisitor("GET");
    await isCalled;
    socket.destroy();
    await aborted;
    expect(errors).toEqual([]);
  });
});

describe("the visitor gets", () => {
  test("a streamed response no faster than it reads it, and its end when it leaves", async () => {
    let pulled = 0;
    let isCanceled = false;
    handler = () =>
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(65_536).fill((pulled += 1))),
          cancel: () => void (isCanceled = true),
        }),
      );
    const { socket } = await openVisitor("GET");
    socket.pause();
    let last = -1;
    const hasStopped = () => pulled > 0 && pulled === last;
    await vi.waitUntil(() => hasStopped() || ((last = pulled), false), {
      ...WAIT_OPTIONS,
      interval: 500,
    });
    // One window of 1 MiB, and what the sockets on the way hold.
    expect(pulled * 65_536).toBeLessThan(64 * 1024 * 1024);
    socket.destroy();
    await vi.waitUntil(() => isCanceled, WAIT_OPTIONS);
  });

  test("each Set-Cookie in a line of its own", async () => {
    handler = () =>
      new Response("", {
        headers: [
          ["set-cookie", "a=1, b"],
          ["set-cookie", "c=2"],
        ],
      });
    const { headers } = await visit();
    const cookies = headers.filter(([name]) => name.toLowerCase() === "set-cookie");
    expect(cookies.map(([, value]) => value)).toEqual(["a=1, b", "c=2"]);
  });

  test.each([
    ["HEAD", 200],
    ["GET", 204],
    ["GET", 304],
  ])("no body for %s with status %i", async (method, status) => {
    const headers = { etag: '"1"', ...(method === "HEAD" ? { "content-length": "5" } : {}) };
    handler = () => new Response(method === "HEAD" ? "hello" : null, { status, headers });
    const answer = await visit("/", "", method);
    expect([answer.status, answer.body.length]).toEqual([status, 0]);
    expect(findHeader(answer.headers, "etag")).toBe('"1"');
    if (method === "HEAD") expect(findHeader(answer.headers, "content-length")).toBe("5");
  });

  test("an error page without the error, which the program gets", async () => {
    handler = () => {
      throw new RangeError("secret detail");
    };
    const ended = once(tunnel.events, "request");
    const { status, headers, body } = await visit("/fails", "Accept: text/html\r\n");
    expect([status, findHeader(headers, "underpass-error")]).toEqual([502, "origin_failed"]);
    expect(body.toString()).not.toContain("secret detail");
    expect(await ended).toMatchObject([
      { path: "/fails", status: 502, problem: "the handler failed: RangeError: secret detail" },
    ]);
    expect(errors).toEqual([new RangeError("secret detail")]);
  });

  test.each<[string, () => unknown]>([
    ["nothing", () => undefined],
    ["a network error", () => Response.error()],
    [
      "text in its body",
      () => new Response(new ReadableStream({ start: (c) => c.enqueue("a" as never) })),
    ],
  ])("an error when the function returns %s", async (_, respond) => {
    handler = respond as RequestHandler;
    const failed = once(tunnel.events, "handlerError");
    await visit().catch(() => undefined);
    expect(await failed).toEqual([expect.any(TypeError)]);
  });

  test("the refusal of a WebSocket as the function answers it", async () => {
    handler = ({ headers }) => new Response(headers.get("upgrade"), { status: 426 });
    const lines = [
      "Connection: Upgrade",
      "Upgrade: websocket",
      "Sec-WebSocket-Version: 13",
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    ];
    const { socket, reader } = await openVisitor("GET", ...lines);
    expect((await reader.head())?.startLine).toMatch(/^HTTP\/1\.1 426 /);
    socket.destroy();
  });
});

describe("the tunnel ends", () => {
  test("when its signal aborts, and emits `closed` once", async () => {
    const stop = new AbortController();
    const tunnel = await stack.expose({
      fetch: () => new Response(),
      signal: stop.signal,
    });
    let count = 0;
    tunnel.events.on("closed", () => (count += 1));
    const closed = once(tunnel.events, "closed");
    stop.abort();
    await closed;
    await tunnel.close();
    expect(count).toBe(1);
  });

  test("before it is open, when the signal aborts: the call rejects with the reason", async () => {
    const reason = new Error("not needed any more");
    const opened = stack.expose({ fetch: () => new Response(), signal: AbortSignal.abort(reason) });
    await expect(opened).rejects.toBe(reason);
    const stop = new AbortController();
    // A server that accepts the connection and never answers.
    const pending = stack.expose({ port: 1, server: "http://192.0.2.1", signal: stop.signal });
    setImmediate(() => stop.abort(reason));
    await expect(pending).rejects.toBe(reason);
  });

  test("at the end of the block that uses it", async () => {
    let url: string;
    {
      await using used = await stack.expose({
        fetch: () => new Response("used"),
        subdomain: "used",
      });
      ({ url } = used);
      expect((await stack.visit("used")).body.toString()).toBe("used");
    }
    expect(url).toContain("//used.");
    expect((await stack.visit("used")).status).toBe(502);
  });
});

test("expose() needs exactly one target, and one token", async () => {
  const both = stack.expose({ port: 3000, fetch: () => new Response() });
  await expect(both).rejects.toThrow("needs exactly one of port, origin and fetch");
  await expect(stack.expose({})).rejects.toThrow("needs exactly one of");
  await expect(stack.expose({ port: 3000, tokenFile: "token" })).rejects.toThrow("not both");
});
