/**
 * Strangers and a hostile tenant, in a process of their own, until it is killed. Each kind of attack comes from loopback
 * addresses of its own, because the server counts connections for each address.
 */
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import WebSocket from "ws";
import { FRAME, FrameWriter, SUBPROTOCOL } from "../../protocol/wire/frames.ts";

export interface AttackPlan {
  port: number;
  apiHost: string;
  /** The hostile tenant's token, in base64. */
  token: string;
  /** A tunnel with a deny rule, whose local server never answers `/never` and echoes WebSocket messages. */
  host: string;
}

const SLOW_CONNECTIONS = 400;
const SLOW_BYTE_MS = 1_000;
const UNREAD_DOWNLOADS = 10;
const UNREAD_SOCKETS = 5;
const UNREAD_MESSAGE = Buffer.alloc(64 * 1024, "x");
const UNKNOWN_HOSTS_PER_SECOND = 50;
const ABANDONED_PER_SECOND = 25;
const BOMBS_PER_SECOND = 10;
const LOGINS_PER_SECOND = 5;
const AGENT_FRAMES_PER_SECOND = 100;
/** A path that a deny rule can read in many ways, as long as the server accepts. */
const BOMB = `/${"%252e%252e%252f".repeat(8_000)}`;

function startAttacks({ port, apiHost, token, host }: AttackPlan): void {
  let turn = 0;
  /** A connection from one of some addresses that only this attack uses. */
  const open = (kind: number, text: string): Socket => {
    turn += 1;
    const localAddress = `127.0.${kind}.${1 + (turn % 8)}`;
    const socket = connect({ port, host: "127.0.0.1", localAddress });
    socket.on("error", () => undefined);
    socket.write(text);
    return socket;
  };
  const get = (name: string, path: string): string =>
    `GET ${path} HTTP/1.1\r\nHost: ${name}\r\n\r\n`;

  repeat(UNKNOWN_HOSTS_PER_SECOND, () => {
    const socket = open(1, get(`${crypto.randomUUID()}.localhost`, "/"));
    socket.once("data", () => socket.destroy());
  });
  for (let at = 0; at < SLOW_CONNECTIONS; at += 1)
    void sendSlowly(() => open(2, "GET / HTTP/1.1\r\n"));
  repeat(ABANDONED_PER_SECOND, () => {
    const socket = open(3, get(host, "/never"));
    socket.resume();
    setTimeout(() => socket.end(), 200);
  });
  for (let at = 0; at < UNREAD_DOWNLOADS; at += 1)
    open(4, get(host, "/bytes?n=1000000000")).pause();
  for (let at = 0; at < UNREAD_SOCKETS; at += 1) void sendUnread(port, host);
  repeat(BOMBS_PER_SECOND, () => {
    const socket = open(5, get(host, BOMB));
    socket.once("data", () => socket.destroy());
  });
  repeat(LOGINS_PER_SECOND, () => {
    const body = JSON.stringify({ email: "owner@localhost", password: crypto.randomUUID() });
    const lines = `Host: ${apiHost}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}`;
    const socket = open(6, `POST /auth/login HTTP/1.1\r\n${lines}\r\n\r\n${body}`);
    socket.once("data", () => socket.destroy());
  });
  void actAsHostileAgent(port, apiHost, token);
}

function repeat(perSecond: number, act: () => void): void {
  setInterval(act, 1000 / perSecond);
}

/** Opens a connection and sends a header byte by byte, repeatedly. */
async function sendSlowly(openConnection: () => Socket): Promise<void> {
  for (;;) {
    const socket = openConnection();
    while (!socket.destroyed && socket.writable) {
      socket.write("x");
      await sleep(SLOW_BYTE_MS);
    }
    socket.destroy();
    await sleep(SLOW_BYTE_MS);
  }
}

/** Sends messages to a server that returns each of them, and reads none. */
async function sendUnread(port: number, host: string): Promise<void> {
  for (;;) {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/echo`, {
      headers: { host },
      perMessageDeflate: false,
    });
    socket.on("error", () => undefined);
    socket.on("open", () => (socket as unknown as { _socket: Socket })._socket.pause());
    while (socket.readyState <= WebSocket.OPEN) {
      if (socket.readyState === WebSocket.OPEN && socket.bufferedAmount < 1024 * 1024)
        socket.send(UNREAD_MESSAGE);
      await sleep(20);
    }
    await sleep(1_000);
  }
}

/** Announces enormous windows, and sends frames of streams that do not exist. */
async function actAsHostileAgent(port: number, apiHost: string, token: string): Promise<void> {
  for (;;) {
    const socket = new WebSocket(
      `ws://127.0.0.1:${port}/agent/connect?port=1&subdomain=hostile`,
      SUBPROTOCOL,
      { headers: { host: apiHost, authorization: `Bearer ${token}` } },
    );
    socket.on("error", () => undefined);
    const send = (write: (writer: FrameWriter) => void): void => {
      const writer = new FrameWriter();
      write(writer);
      if (socket.readyState === WebSocket.OPEN) socket.send(Buffer.from(writer.take()));
    };
    socket.on("open", () =>
      send((writer) =>
        writer.writeJson(FRAME.hello, 0, 0, {
          protocol: 1,
          agent: "hostile/1",
          capabilities: ["websocket"],
          streamWindow: 2 ** 40,
          connectionWindow: 2 ** 40,
        }),
      ),
    );
    while (socket.readyState <= WebSocket.OPEN) {
      send((writer) => writer.writeCredit(Math.floor(Math.random() * 2 ** 31), 2 ** 30));
      await sleep(1000 / AGENT_FRAMES_PER_SECOND);
    }
    await sleep(1_000);
  }
}

process.once("message", (plan) => startAttacks(plan as AttackPlan));
process.once("disconnect", () => process.exit());
