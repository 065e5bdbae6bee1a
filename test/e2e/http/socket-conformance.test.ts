/** The same frames directly to a local server and through its tunnel: the answers must be the same. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { WEBSOCKET_CASES, type WebSocketCase } from "../../harness/formats/websocket-cases.ts";
import { startStack, type Stack } from "../../harness/server/stack.ts";
import { buildClose, OPCODE, RawWebSocket } from "../../harness/tunnel/raw-websocket.ts";

const IN_PARALLEL = 16;
const LAST_TEXT = "the last text";

let stack: Stack;
let port: number;
const site = createServer();
const sockets = new WebSocketServer({ server: site });

beforeAll(async () => {
  sockets.on("connection", (socket) => {
    socket.on("error", () => undefined);
    socket.on("message", (message, isBinary) => socket.send(message, { binary: isBinary }));
  });
  site.listen(0, "127.0.0.1");
  [stack] = await Promise.all([startStack(), once(site, "listening")]);
  ({ port } = site.address() as AddressInfo);
  await stack.expose({ port, subdomain: "conformance" });
});
afterAll(async () => {
  await stack.stop();
  sockets.close();
  site.closeAllConnections();
  site.close();
});

/**
 * What a visitor receives: pongs, then messages in their order, then the code and the reason of the Close. A pong comes from
 * the tunnel's own end, so it may overtake a message.
 */
async function collectAnswers(at: number, { frames }: WebSocketCase): Promise<string> {
  const visitor = await RawWebSocket.open({ port: at, host: `conformance.localhost:${at}` });
  // The local server sends the last text back after everything else. All in one write: bytes that arrive after the server has
  // closed would be answered with a reset, which can discard the Close.
  visitor.send(...frames, { opcode: OPCODE.text, payload: LAST_TEXT });
  const pongs: string[] = [];
  const messages: string[] = [];
  let close = "none";
  let message = "";
  for (let frame = await visitor.next(); frame; frame = await visitor.next()) {
    const { opcode, payload, fin } = frame;
    if (opcode === OPCODE.close) {
      close =
        payload.length < 2
          ? "without a code"
          : `${payload.readUInt16BE()} ${payload.toString("latin1", 2)}`;
      break;
    }
    if (opcode === OPCODE.pong) {
      pongs.push(payload.toString("hex"));
      continue;
    }
    message += payload.toString("latin1");
    if (!fin) continue;
    if (message === LAST_TEXT) visitor.send(buildClose(1000));
    messages.push(message);
    message = "";
  }
  visitor.socket.destroy();
  return JSON.stringify({ pongs, messages, close });
}

test("visitors get the answers through a tunnel that they get directly", async () => {
  const different: string[] = [];
  const waiting = [...WEBSOCKET_CASES];
  const work = async () => {
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      const [direct, tunneled] = await Promise.all([
        collectAnswers(port, next),
        collectAnswers(stack.server.port, next),
      ]);
      if (direct !== tunneled) different.push(next.name);
    }
  };
  await Promise.all(Array.from({ length: IN_PARALLEL }, work));
  expect(WEBSOCKET_CASES.length).toBeGreaterThan(300);
  expect(different).toEqual([]);
});
