/** A visitor's WebSocket as the agent forwards it, where a test decides what the tunnel credits. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { MESSAGE_OVERHEAD_BYTES, STREAM_WINDOW_BYTES } from "../../../../protocol/limits.ts";
import { FLAG, FRAME } from "../../../../protocol/wire/frames.ts";
import { startScriptedTunnel } from "../../../harness/tunnel/scripted-tunnel.ts";

const SOCKET = 1;
const REQUEST = 2;
const MESSAGES = 3 * (STREAM_WINDOW_BYTES / MESSAGE_OVERHEAD_BYTES);
const HANDSHAKE = ["GET", "/", "host", "shop.localhost", "sec-websocket-version", "13"];

/** Answers requests, and sends many messages of one byte on each WebSocket. */
const site = createServer((_request, response) => response.end("ok"));
const sockets = new WebSocketServer({ server: site });
sockets.on("connection", (socket) => {
  for (let n = 0; n < MESSAGES; n += 1) socket.send("x");
});

beforeAll(async () => {
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
});
afterAll(() => {
  sockets.close();
  site.closeAllConnections();
  site.close();
});

test("very many tiny messages do not fill the connection, and continue with credit", async () => {
  await using tunnel = await startScriptedTunnel((site.address() as AddressInfo).port);
  tunnel.agent.start();
  const connection = await tunnel.connection();
  connection.request(SOCKET, HANDSHAKE, FLAG.socket);
  let received = 0;
  let answered = false;
  for (let frame = await connection.next(); ; frame = await connection.next()) {
    if (frame.stream === REQUEST) {
      answered ||= frame.type === FRAME.response;
      if (answered && frame.flags & FLAG.end) break;
    } else if (frame.type === FRAME.text && ++received === 1) {
      connection.request(REQUEST, ["GET", "/", "host", "shop.localhost"]);
    }
  }
  expect(received).toBeLessThanOrEqual(STREAM_WINDOW_BYTES / MESSAGE_OVERHEAD_BYTES);
  for (let credited = 0; received < MESSAGES;) {
    if (received > credited) {
      const bytes = received - credited;
      connection.send((writer) => writer.writeCredit(SOCKET, bytes));
      credited = received;
    }
    const { type } = await connection.next();
    if (type === FRAME.text) received += 1;
  }
  expect(received).toBe(MESSAGES);
});
