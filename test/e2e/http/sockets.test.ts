import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { WEBSOCKET_MESSAGE_MAX_BYTES } from "../../../protocol/limits.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { createRandom } from "../../harness/random.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";

const SUBPROTOCOLS = ["chat.v2", "chat.v1"];
/** Created before the agent in this process connects, because that takes long on a busy machine, and the agent would miss its heartbeats. */
const LARGE_MESSAGE = Buffer.from(createRandom(31).bytes(16 * 1024 * 1024));

let stack: Stack;
let port: number;
/** Set by a test that refuses a handshake by hand. */
let refuse: ((socket: Duplex) => void) | undefined;
const site = createServer();
const sockets = new WebSocketServer({
  noServer: true,
  maxPayload: WEBSOCKET_MESSAGE_MAX_BYTES,
  handleProtocols: (offered) => SUBPROTOCOLS.find((known) => offered.has(known)) ?? false,
});

beforeAll(async () => {
  site.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (refuse) return refuse(socket);
    sockets.handleUpgrade(request, socket, head, (accepted) => {
      sockets.emit("connection", accepted, request);
    });
  });
  site.listen(0, "127.0.0.1");
  [stack] = await Promise.all([startStack(), once(site, "listening")]);
  ({ port } = site.address() as AddressInfo);
  await stack.expose({ port, subdomain: "rooms" });
});
afterAll(async () => {
  await stack.stop();
  sockets.close();
  site.closeAllConnections();
  site.close();
});

interface Pair {
  visitor: WebSocket;
  server: WebSocket;
  request: IncomingMessage;
}

function open(protocols: string[] = [], headers: Record<string, string> = {}): WebSocket {
  return new WebSocket(`ws://127.0.0.1:${stack.server.port}/room?a=%2f`, protocols, {
    headers: { host: `rooms.localhost:${stack.server.port}`, cookie: "a=1", ...headers },
    maxPayload: WEBSOCKET_MESSAGE_MAX_BYTES,
    perMessageDeflate: false,
  });
}

/** Both ends of a WebSocket through the tunnel. */
async function connect(protocols?: string[], headers?: Record<string, string>): Promise<Pair> {
  refuse = undefined;
  const accepted = once(sockets, "connection");
  const visitor = open(protocols, headers);
  await once(visitor, "open");
  const [server, request] = (await accepted) as [WebSocket, IncomingMessage];
  return { visitor, server, request };
}

const next = (socket: WebSocket) => once(socket, "message") as Promise<[Buffer, boolean]>;
const waitForClose = async (socket: WebSocket) => {
  const [code, reason] = (await once(socket, "close")) as [number, Buffer];
  return [code, reason.toString()];
};

describe("a WebSocket", () => {
  test("forwards the visitor's handshake to the local server", async () => {
    const { visitor, request } = await connect();
    expect(request.url).toBe("/room?a=%2f");
    expect(request.headers).toMatchObject({
      host: `rooms.localhost:${stack.server.port}`,
      cookie: "a=1",
      "x-forwarded-for": "127.0.0.1",
    });
    expect(request.headers).not.toHaveProperty("sec-websocket-extensions");
    visitor.terminate();
  });

  test("has no length in its handshake: a local server would take messages for a body", async () => {
    const { visitor, server, request } = await connect([], { "content-length": "0" });
    expect(request.headers).not.toHaveProperty("content-length");
    expect(request.headers).not.toHaveProperty("transfer-encoding");
    visitor.send("hello");
    expect((await next(server))[0].toString()).toBe("hello");
    visitor.terminate();
  });

  test("carries text, binary and empty messages both ways, in order", async () => {
    const { visitor, server } = await connect();
    const messages = ["hello", "", "ping", "𝄞", Buffer.from([0, 255]), Buffer.alloc(0)];
    for (const [from, to] of [
      [visitor, server],
      [server, visitor],
    ] as const) {
      const received: unknown[] = [];
      const all = new Promise<void>((resolve) => {
        to.on("message", (data: Buffer, isBinary) => {
          received.push(isBinary ? data : data.toString());
          if (received.length === messages.length) resolve();
        });
      });
      for (const message of messages) from.send(message);
      await all;
      expect(received).toEqual(messages);
    }
    visitor.terminate();
  });

  test("carries messages of 16 MiB both ways", async () => {
    const { visitor, server } = await connect();
    for (const [from, to] of [
      [visitor, server],
      [server, visitor],
    ] as const) {
      const arrived = next(to);
      from.send(LARGE_MESSAGE);
      const [received] = await arrived;
      expect(received.equals(LARGE_MESSAGE)).toBe(true);
    }
    visitor.terminate();
  });

  test("carries a thousand small messages in order", async () => {
    const { visitor, server } = await connect();
    server.on("message", (data: Buffer) => server.send(data.toString()));
    const echoed: number[] = [];
    const all = new Promise<void>((resolve) => {
      visitor.on("message", (data: Buffer) => {
        if (echoed.push(Number(data)) === 1_000) resolve();
      });
    });
    for (let i = 0; i < 1_000; i += 1) visitor.send(String(i));
    await all;
    expect(echoed).toEqual(Array.from({ length: 1_000 }, (_, i) => i));
    visitor.terminate();
  });

  test("has the subprotocol that the local server chose", async () => {
    const { visitor, server } = await connect(["chat.v1", "chat.v2"]);
    expect([visitor.protocol, server.protocol]).toEqual(["chat.v2", "chat.v2"]);
    visitor.terminate();
  });

  test("has its pings answered", async () => {
    const { visitor, server } = await connect();
    visitor.ping("still there?");
    expect(String(((await once(visitor, "pong")) as [Buffer])[0])).toBe("still there?");
    server.ping();
    await once(server, "pong");
    visitor.terminate();
  });

  test.each([
    [1000, "done"],
    [1001, "going"],
    [3000, ""],
    [4999, "ü"],
  ])("is closed from either end with %i %s", async (code, reason) => {
    for (const side of ["visitor", "server"] as const) {
      const pair = await connect();
      pair.visitor.send("hello");
      await next(pair.server);
      const other = waitForClose(side === "visitor" ? pair.server : pair.visitor);
      pair[side].close(code, reason);
      expect(await other).toEqual([code, reason]);
    }
  });

  test("is also closed for a visitor who has sent nothing", async () => {
    const { visitor, server } = await connect();
    server.close(4000, "enough");
    // workerd leaves the TCP connection open until the tunnel hibernates; the Close frame arrives at once.
    await vi.waitUntil(() => visitor.readyState !== WebSocket.OPEN, WAIT_OPTIONS);
    visitor.terminate();
  });

  test("whose connection is lost at one end ends at the other", async () => {
    for (const side of ["visitor", "server"] as const) {
      const pair = await connect();
      pair.visitor.send("hello");
      await next(pair.server);
      const other = waitForClose(side === "visitor" ? pair.server : pair.visitor);
      pair[side].terminate();
      await other;
    }
  });
});

describe("a refused handshake", () => {
  test("forwards the local server's own response", async () => {
    refuse = (socket) =>
      void socket.end(
        "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Basic\r\ncontent-length: 7\r\n\r\nwho are",
      );
    const [, response] = (await once(open(), "unexpected-response")) as [unknown, IncomingMessage];
    expect([response.statusCode, response.headers["www-authenticate"]]).toEqual([401, "Basic"]);
    expect(String(((await once(response, "data")) as [Buffer])[0])).toBe("who are");
  });

  test.each([
    ["closes the connection", (socket: Duplex) => void socket.destroy()],
    ["answers with another protocol", (socket: Duplex) => void socket.end("SSH-2.0\r\n")],
  ])("is 502 when the local server %s", async (_, act) => {
    refuse = act;
    const [, response] = (await once(open(), "unexpected-response")) as [unknown, IncomingMessage];
    expect([response.statusCode, response.headers["underpass-error"]]).toEqual([
      502,
      "origin_failed",
    ]);
  });

  test("that selects none of the offered subprotocols is 502", async () => {
    refuse = undefined;
    const [, response] = (await once(open(["unknown"]), "unexpected-response")) as [
      unknown,
      IncomingMessage,
    ];
    expect(response.headers["underpass-error"]).toBe("origin_failed");
  });

  test("with a wrong accept key is 502", async () => {
    refuse = (socket) =>
      void socket.write(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: wrong\r\n\r\n",
      );
    const [, response] = (await once(open(), "unexpected-response")) as [unknown, IncomingMessage];
    expect(response.headers["underpass-error"]).toBe("origin_failed");
  });
});
