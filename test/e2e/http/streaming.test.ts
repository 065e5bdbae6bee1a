import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  constants,
  createBrotliCompress,
  createGzip,
  type BrotliCompress,
  type Gzip,
} from "node:zlib";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { dial, getFraming, MessageReader } from "../../harness/tunnel/raw-http.ts";
import { mintToken } from "../../harness/server/api.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";
import { runAgent } from "../../harness/tunnel/agent.ts";

let stack: Stack;
let handle: (request: IncomingMessage, response: ServerResponse) => void;
const site = createServer((request, response) => handle(request, response));

beforeAll(async () => {
  site.listen(0, "127.0.0.1");
  [stack] = await Promise.all([startStack(), once(site, "listening")]);
  await stack.expose({ port: (site.address() as AddressInfo).port, subdomain: "streaming" });
});
afterAll(async () => {
  await stack.stop();
  site.closeAllConnections();
  site.close();
});

/** Opens a visitor's connection and sends the head of a request. */
async function openVisitor(head = "GET / HTTP/1.1", lines: string[] = [], subdomain = "streaming") {
  const socket = await dial(stack.server.port);
  socket.on("error", () => undefined);
  const host = `Host: ${subdomain}.localhost:${stack.server.port}`;
  socket.write([head, host, ...lines, "", ""].join("\r\n"));
  const reader = new MessageReader(socket);
  return {
    socket,
    reader,
    /** Reads the response's head. @returns its status, and a function that reads its pieces. */
    answer: async () => {
      const head = await reader.head();
      const status = Number(head?.startLine.split(" ")[1]);
      const headers = head?.headers ?? [];
      const framing = getFraming(headers, "GET", status);
      const bytes = () => reader.chunk(framing);
      return { status, headers, bytes, piece: async () => (await bytes())?.toString() };
    },
  };
}

/** The local server's end of the next request. */
function nextRequest(): Promise<{ request: IncomingMessage; response: ServerResponse }> {
  return new Promise((resolve) => {
    handle = (request, response) => resolve({ request, response });
  });
}

describe("each piece of a response arrives before the next is written:", () => {
  test.each([
    "text/event-stream",
    "text/html; charset=utf-8",
    "application/x-ndjson",
    "application/octet-stream",
    "application/grpc",
  ])("%s", async (type) => {
    const pendingRequest = nextRequest();
    const { answer, socket } = await openVisitor();
    const { response } = await pendingRequest;
    response.writeHead(200, { "content-type": type }).flushHeaders();
    const { piece } = await answer();
    for (const text of ["data: 1\n\n", "data: 2\n\n", "no line end"]) {
      response.write(text);
      expect(await piece()).toBe(text);
    }
    response.end();
    expect(await piece()).toBeUndefined();
    socket.destroy();
  });
});

describe("each encoded piece of a response arrives unchanged before the next is written:", () => {
  const TEXTS = ["one ", "two ", "three "];

  /** Each text as a piece of one compressed stream. */
  async function compress(stream: Gzip | BrotliCompress, flush: number): Promise<Buffer[]> {
    const pieces: Buffer[] = [];
    for (const text of TEXTS) {
      stream.write(text);
      await new Promise<void>((resolve) => stream.flush(flush, resolve));
      pieces.push(stream.read() as Buffer);
    }
    return pieces;
  }

  test.each([
    ["gzip", () => compress(createGzip(), constants.Z_SYNC_FLUSH)],
    ["br", () => compress(createBrotliCompress(), constants.BROTLI_OPERATION_FLUSH)],
    ["gzip, which it is not", () => Promise.resolve(TEXTS.map((text) => Buffer.from(text)))],
  ])("%s", async (encoding, createPieces) => {
    const pieces = await createPieces();
    const pendingRequest = nextRequest();
    const { answer, socket } = await openVisitor("GET / HTTP/1.1", ["Accept-Encoding: gzip, br"]);
    const { response } = await pendingRequest;
    const header = encoding.split(",")[0]!;
    response.writeHead(200, { "content-encoding": header }).flushHeaders();
    const { headers, bytes } = await answer();
    expect(new Headers(headers).get("content-encoding")).toBe(header);
    for (const piece of pieces) {
      response.write(piece);
      expect(await bytes()).toEqual(piece);
    }
    response.end();
    expect(await bytes()).toBeNull();
    socket.destroy();
  });
});

describe("an upload", () => {
  const toChunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

  test("arrives piece by piece before the visitor has finished it", async () => {
    const pendingRequest = nextRequest();
    const { answer, socket } = await openVisitor("POST / HTTP/1.1", ["Transfer-Encoding: chunked"]);
    socket.write(toChunk("one"));
    const { request, response } = await pendingRequest;
    const piece = async () => String(((await once(request, "data")) as [Buffer])[0]);
    expect(await piece()).toBe("one");
    for (const text of ["two", "three"]) {
      socket.write(toChunk(text));
      expect(await piece()).toBe(text);
    }
    socket.write("0\r\n\r\n");
    await once(request, "end");
    response.end("thanks");
    expect(await (await answer()).piece()).toBe("thanks");
    socket.destroy();
  });

  test("flows at the same time as its response", async () => {
    const pendingRequest = nextRequest();
    const { answer, socket } = await openVisitor("POST / HTTP/1.1", ["Transfer-Encoding: chunked"]);
    socket.write(toChunk("ping"));
    const { request, response } = await pendingRequest;
    request.pipe(response);
    const { piece } = await answer();
    expect(await piece()).toBe("ping");
    for (const text of ["pong", "pang"]) {
      socket.write(toChunk(text));
      expect(await piece()).toBe(text);
    }
    socket.destroy();
  });

  test("that is answered before it is complete is not read to its end", async () => {
    const pendingRequest = nextRequest();
    const lines = ["Content-Length: 100000000"];
    const { answer, socket } = await openVisitor("POST / HTTP/1.1", lines);
    socket.write(Buffer.alloc(100_000));
    const { request, response } = await pendingRequest;
    const closed = once(request.socket, "close");
    response.writeHead(413, { connection: "close" }).end("too large");
    const { status, piece } = await answer();
    expect([status, await piece()]).toEqual([413, "too large"]);
    await closed;
    socket.destroy();
  });
});

describe("the other end is notified of the loss of", () => {
  test("a visitor, during a response", async () => {
    const pendingRequest = nextRequest();
    const { answer, socket } = await openVisitor();
    const { response } = await pendingRequest;
    response.write("first");
    await (await answer()).piece();
    const closed = once(response, "close");
    socket.destroy();
    const more = setInterval(() => response.write("more"), 20);
    await closed;
    clearInterval(more);
    expect(response.writableFinished).toBe(false);
  });

  test("a visitor, with unsent data, every time", async () => {
    let open = 0;
    handle = (_, response) => {
      open += 1;
      response.on("close", () => (open -= 1));
      response.write(Buffer.alloc(5 * 1024 * 1024));
    };
    for (let visits = 0; visits < 20; visits += 1) {
      const { answer, socket } = await openVisitor();
      await (await answer()).piece();
      socket.resetAndDestroy();
    }
    await vi.waitUntil(() => open === 0, WAIT_OPTIONS);
  });

  test("a visitor, before the response", async () => {
    const pendingRequest = nextRequest();
    const { socket } = await openVisitor();
    const { response } = await pendingRequest;
    const closed = once(response, "close");
    socket.resetAndDestroy();
    await closed;
  });

  test("a visitor, during an upload", async () => {
    const pendingRequest = nextRequest();
    const { socket } = await openVisitor("POST / HTTP/1.1", ["Content-Length: 1000"]);
    socket.write("a part");
    const { request } = await pendingRequest;
    request.on("error", () => undefined).resume();
    const closed = new Promise((resolve) => request.socket.once("close", resolve));
    socket.resetAndDestroy();
    await closed;
    expect(request.complete).toBe(false);
  });

  test("the local server, during a response of known length", async () => {
    const pendingRequest = nextRequest();
    const { answer, socket } = await openVisitor();
    const { response } = await pendingRequest;
    response.writeHead(200, { "content-length": "100" }).write("half");
    const { piece } = await answer();
    expect(await piece()).toBe("half");
    response.destroy();
    await expect(piece()).rejects.toThrow();
    socket.destroy();
  });

  test("the local server, after the first bytes of a response without a length", async () => {
    const pendingRequest = nextRequest();
    const { answer, socket } = await openVisitor();
    const { response } = await pendingRequest;
    response.write("half");
    const { piece } = await answer();
    expect(await piece()).toBe("half");
    response.destroy();
    await expect(piece()).rejects.toThrow();
    socket.destroy();
  });

  test("the agent, which was killed, after the first bytes of a response without a length", async () => {
    const { wireBytes } = await mintToken(stack.owner);
    const { port } = site.address() as AddressInfo;
    const options = [
      "--server",
      stack.server.url,
      "--token-file",
      "TOKEN",
      "--subdomain",
      "killed-streaming",
    ];
    await using agent = await runAgent(["http", String(port), "--json", ...options], {
      token: Buffer.from(wireBytes, "base64"),
    });
    await agent.event("ready");
    const pendingRequest = nextRequest();
    const { answer, socket } = await openVisitor(undefined, [], "killed-streaming");
    const { response } = await pendingRequest;
    response.write("half");
    const { piece } = await answer();
    expect(await piece()).toBe("half");
    agent.child.kill("SIGKILL");
    await expect(piece()).rejects.toThrow();
    socket.destroy();
  });

  test("the local server, during server-sent events, whose readers then reconnect", async () => {
    const pendingRequest = nextRequest();
    const { answer, socket } = await openVisitor();
    const { response } = await pendingRequest;
    response.writeHead(200, { "content-type": "text/event-stream" }).write("data: 1\n\n");
    const { piece } = await answer();
    await piece();
    response.destroy();
    expect(await piece()).toBeUndefined();
    socket.destroy();
  });

  test("the local server, before its response", async () => {
    handle = (request) => void request.socket.destroy();
    const { status, headers } = await stack.visit("streaming");
    expect([status, Object.fromEntries(headers)["underpass-error"]]).toEqual([
      502,
      "origin_failed",
    ]);
  });
});

test("a slow reader slows down only its own stream", async () => {
  const pendingRequest = nextRequest();
  const { answer, socket } = await openVisitor();
  const { response } = await pendingRequest;
  response.flushHeaders();
  await answer();
  socket.pause();
  const chunk = Buffer.alloc(1024 * 1024);
  let written = 0;
  while (response.write(chunk)) written += chunk.length;
  for (; written < 200 * chunk.length; written += chunk.length) {
    const drained = once(response, "drain").then(() => true);
    handle = (_, next) => void next.end("quick");
    expect((await stack.visit("streaming")).body.toString()).toBe("quick");
    if (!(await Promise.race([drained, stack.visit("streaming").then(() => false)]))) break;
    response.write(chunk);
  }
  // Only as much as the windows and the system's buffers hold.
  expect(written).toBeLessThan(100 * chunk.length);
  socket.destroy();
  await once(response, "close");
});
