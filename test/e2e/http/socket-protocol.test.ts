/** Visitors and local servers that violate the WebSocket protocol, or use what clients rarely use: with raw frames. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { startStack, type Stack } from "../../harness/server/stack.ts";
import { findHeader } from "../../harness/tunnel/raw-http.ts";
import {
  buildClose,
  OPCODE,
  RawWebSocket,
  type FrameToSend,
} from "../../harness/tunnel/raw-websocket.ts";

const ACCEPT_SUFFIX = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const MIB = 1024 * 1024;

let stack: Stack;
/** Set by a test that plays the local server by hand, after the handshake. */
let playServer: ((socket: Duplex) => void) | undefined;
const site = createServer();
const sockets = new WebSocketServer({ noServer: true });

beforeAll(async () => {
  site.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (!playServer) {
      sockets.handleUpgrade(request, socket, head, (accepted) => {
        sockets.emit("connection", accepted, request);
      });
      return;
    }
    const key = `${request.headers["sec-websocket-key"]}${ACCEPT_SUFFIX}`;
    const accept = createHash("sha1").update(key).digest("base64");
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    socket.on("error", () => undefined);
    playServer(socket);
  });
  site.listen(0, "127.0.0.1");
  [stack] = await Promise.all([startStack(), once(site, "listening")]);
  await stack.expose({ port: (site.address() as AddressInfo).port, subdomain: "frames" });
});
afterAll(async () => {
  await stack.stop();
  sockets.close();
  site.closeAllConnections();
  site.close();
});

const open = (headers = "") =>
  RawWebSocket.open({
    port: stack.server.port,
    host: `frames.localhost:${stack.server.port}`,
    headers,
  });

/** Both ends of a WebSocket: the visitor's as raw frames. */
async function connect(): Promise<{ visitor: RawWebSocket; serverClosed: Promise<unknown[]> }> {
  playServer = undefined;
  const accepted = once(sockets, "connection");
  const visitor = await open();
  const [server] = (await accepted) as [WebSocket];
  // A violation is an error event, and then a close event.
  server.on("error", () => undefined);
  return { visitor, serverClosed: once(server, "close") };
}

/** A local server's frame. */
const unmasked = (opcode: number, payload: Buffer) =>
  Buffer.concat([Buffer.from([0x80 | opcode, payload.length]), payload]);

/** The code of the next Close frame: 1005 for one without a code, null when the connection ends without one. */
async function waitForClose(visitor: RawWebSocket): Promise<number | null> {
  for (let frame = await visitor.next(); frame; frame = await visitor.next()) {
    if (frame.opcode !== OPCODE.close) continue;
    return frame.payload.length < 2 ? 1005 : frame.payload.readUInt16BE();
  }
  return null;
}

describe("a local server", () => {
  test.each<[string, number, Buffer]>([
    ["sends text that is not UTF-8", 1007, unmasked(OPCODE.text, Buffer.from([0xc3, 0x28]))],
    [
      "closes with a reason that is not UTF-8",
      1007,
      unmasked(OPCODE.close, Buffer.from([0x03, 0xe8, 0xc3, 0x28])),
    ],
    [
      "closes with a code that may not be sent",
      1002,
      unmasked(OPCODE.close, Buffer.from([0x03, 0xe7])),
    ],
    [
      "sends a control frame of 126 bytes",
      1002,
      Buffer.concat([Buffer.from([0x89, 126, 0, 126]), Buffer.alloc(126)]),
    ],
    ["sends a frame of an unknown type", 1002, unmasked(3, Buffer.from("?"))],
    ["sends a compressed frame", 1002, Buffer.from([0xc1, 1, 0x61])],
    [
      "announces a message above the limit",
      1009,
      Buffer.from([0x82, 127, 0, 0, 0, 0, 0x7f, 0xff, 0xff, 0xff]),
    ],
    [
      "sends a message in too many fragments",
      1008,
      Buffer.concat([
        Buffer.from([OPCODE.binary, 1, 0]),
        ...Array.from({ length: 20_000 }, () => Buffer.from([OPCODE.continuation, 1, 0])),
      ]),
    ],
  ])("that %s is closed with %i, as is its visitor", async (_, code, bytes) => {
    const received: Buffer[] = [];
    const ended = new Promise<void>((resolve) => {
      playServer = (socket) => {
        socket.on("data", (chunk: Buffer) => received.push(chunk));
        socket.on("end", resolve).on("close", resolve);
        socket.write(bytes);
      };
    });
    const visitor = await open();
    expect(await waitForClose(visitor)).toBe(code);
    visitor.socket.destroy();
    await ended;
    // The agent's frames are masked with zeros or not: the code follows the mask.
    const close = Buffer.concat(received);
    const mask = close.subarray(2, 6);
    expect([close[0], (close[6]! ^ mask[0]!) * 256 + (close[7]! ^ mask[1]!)]).toEqual([0x88, code]);
  });

  test("receives no Content-Length in a handshake, whatever the visitor sends", async () => {
    playServer = undefined;
    const accepted = once(sockets, "connection");
    const visitor = await open("Content-Length: 0\r\n");
    const [, request] = (await accepted) as [WebSocket, IncomingMessage];
    expect(findHeader(toPairs(request.rawHeaders), "content-length")).toBeUndefined();
    visitor.socket.destroy();
  });
});

describe("a visitor", () => {
  test.each([1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999])(
    "who closes with %i is answered with the same code, and the local server receives it",
    async (code) => {
      const { visitor, serverClosed } = await connect();
      visitor.send(buildClose(code));
      expect(await waitForClose(visitor)).toBe(code);
      expect((await serverClosed)[0]).toBe(code);
    },
  );

  test.each([0, 999, 1004, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535])(
    "who closes with %i, which may not be sent, is closed with 1002, as is the local server",
    async (code) => {
      const { visitor, serverClosed } = await connect();
      visitor.send(buildClose(code));
      expect(await waitForClose(visitor)).toBe(1002);
      expect((await serverClosed)[0]).toBe(1002);
    },
  );

  test("who closes with a reason that is not UTF-8 is closed with 1007", async () => {
    const { visitor, serverClosed } = await connect();
    visitor.send(buildClose(1000, Buffer.from([0xc3, 0x28])));
    expect(await waitForClose(visitor)).toBe(1007);
    expect((await serverClosed)[0]).toBe(1007);
  });

  test("who closes gets all that the local server has sent before its Close, and that Close", async () => {
    playServer = (socket) => {
      socket.on("data", () => {
        // The visitor's Close is the only frame.
        const last = ["first", "second"].map((text) => unmasked(OPCODE.text, Buffer.from(text)));
        const close = unmasked(OPCODE.close, Buffer.from("\x0f\xa1later", "latin1"));
        socket.end(Buffer.concat([...last, close]));
      });
    };
    const visitor = await open();
    visitor.send(buildClose(1000, "done"));
    const received = [await visitor.next(), await visitor.next(), await visitor.next()];
    expect(received.map((frame) => frame?.payload.toString("latin1"))).toEqual([
      "first",
      "second",
      "\x0f\xa1later",
    ]);
    visitor.socket.destroy();
  });

  test("who closes gets echoes beyond the windows of flow control first", async () => {
    playServer = undefined;
    const accepted = once(sockets, "connection");
    const visitor = await open();
    const [server] = (await accepted) as [WebSocket];
    server.on("message", (data, binary) => server.send(data, { binary }));
    const payload = Buffer.alloc(2 * MIB, "a");
    const messages = Array.from({ length: 4 }, () => ({ opcode: OPCODE.binary, payload }));
    visitor.send(...messages, buildClose(4001));
    const received: number[] = [];
    let frame = await visitor.next();
    for (; frame && frame.opcode !== OPCODE.close; frame = await visitor.next())
      received.push(frame.payload.length);
    expect(received.reduce((sum, bytes) => sum + bytes, 0)).toBe(8 * MIB);
    expect(frame?.payload.readUInt16BE()).toBe(4001);
    visitor.socket.destroy();
  });

  test("who closes is answered with the same code when the local server disconnects instead", async () => {
    playServer = (socket) => void socket.on("data", () => socket.destroy());
    const visitor = await open();
    visitor.send(buildClose(4001));
    expect(await waitForClose(visitor)).toBe(4001);
    visitor.socket.destroy();
  });

  test("who sends ten pings at once gets ten pongs", async () => {
    const { visitor } = await connect();
    const payloads = Array.from({ length: 10 }, (_, i) => `ping ${i}`);
    visitor.send(...payloads.map((payload) => ({ opcode: OPCODE.ping, payload })));
    for (const payload of payloads)
      expect(await visitor.next()).toMatchObject({
        opcode: OPCODE.pong,
        payload: Buffer.from(payload),
      });
    visitor.socket.destroy();
  });

  test.each<[string, number, FrameToSend[]]>([
    [
      "who sends text that is not UTF-8",
      1007,
      [{ opcode: OPCODE.text, payload: Buffer.from([0xc3, 0x28]) }],
    ],
    [
      "who ends a text inside a character",
      1007,
      [
        { opcode: OPCODE.text, payload: Buffer.from([0xe2, 0x82]), fin: false },
        { opcode: OPCODE.continuation },
      ],
    ],
    ["who sends a ping of 126 bytes", 1002, [{ opcode: OPCODE.ping, payload: "*".repeat(126) }]],
    ["who sends a Close of one byte", 1002, [{ opcode: OPCODE.close, payload: "*" }]],
    ["who sends a frame of an unknown type", 1002, [{ opcode: 3 }]],
  ])("%s is closed with %i, as is the local server", async (_, code, frames) => {
    const { visitor, serverClosed } = await connect();
    visitor.send(...frames);
    expect(await waitForClose(visitor)).toBe(code);
    expect((await serverClosed)[0]).toBe(code);
  });

  test("who sends an invalid byte in the middle of a long frame is closed with 1007", async () => {
    const { visitor, serverClosed } = await connect();
    const payload = Buffer.alloc(4 * 1024 * 1024, "a");
    payload[payload.length - 1] = 0xff;
    visitor.send({ opcode: OPCODE.text, payload });
    expect(await waitForClose(visitor)).toBe(1007);
    await serverClosed;
  });

  test("can't acknowledge in place of the front proxy, nor see that it does", async () => {
    const { visitor } = await connect();
    expect(visitor.head.toLowerCase()).not.toContain("underpass-acknowledged");
    visitor.socket.destroy();
  });

  test("who offers compression gets none", async () => {
    playServer = undefined;
    const visitor = await open("Sec-WebSocket-Extensions: permessage-deflate\r\n");
    expect(visitor.head.toLowerCase()).not.toContain("sec-websocket-extensions");
    visitor.send({ opcode: OPCODE.text, payload: "x", rsv: 4 });
    expect(await waitForClose(visitor)).toBe(1002);
  });
});

function toPairs(rawHeaders: string[]): [string, string][] {
  return rawHeaders.flatMap((name, i) => (i % 2 === 0 ? [[name, rawHeaders[i + 1]!]] : [])) as [
    string,
    string,
  ][];
}
