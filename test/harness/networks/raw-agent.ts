/** An agent of a test's own making, which says to a relay what no honest agent says. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { WebSocket } from "ws";
import type { RelayAccess } from "../../../protocol/resources/networks.ts";
import { FromRelay, type FromAgent, type NetworkWelcome } from "../../../protocol/relay-control.ts";
import {
  DATAGRAM,
  readBound,
  RELAY_SUBPROTOCOL,
  writeBind,
  writeDatagramHeader,
} from "../../../protocol/relay-datagrams.ts";
import { DATAGRAM_HEADER_BYTES } from "../../../protocol/limits/relay.ts";
import { until } from "../api.ts";

export interface RawAgent extends AsyncDisposable {
  welcome: NetworkWelcome;
  key: Buffer;
  udp: UdpProbe;
  /** All messages of the relay. */
  messages: FromRelay[];
  /** What the relay closed the connection with, once it has. */
  readonly closed: { code: number; reason: string } | undefined;
  send(message: FromAgent): void;
  /** Sends BIND until BOUND has come. */
  bind(): Promise<void>;
}

export interface UdpProbe extends AsyncDisposable {
  port: number;
  /** Everything that came. */
  received: Buffer[];
  readonly sentBytes: number;
  readonly receivedBytes: number;
  send(bytes: Uint8Array, port: number): void;
}

/** A UDP socket that sends anything to ports of this machine, and keeps all answers. */
export async function openProbe(): Promise<UdpProbe> {
  const socket: Socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  socket.on("error", () => undefined);
  const received: Buffer[] = [];
  let sentBytes = 0;
  socket.on("message", (bytes: Buffer) => received.push(bytes));
  return {
    port: socket.address().port,
    received,
    get sentBytes() {
      return sentBytes;
    },
    get receivedBytes() {
      return received.reduce((sum, { byteLength }) => sum + byteLength, 0);
    },
    send(bytes, port) {
      sentBytes += bytes.byteLength;
      socket.send(bytes, port, "127.0.0.1");
    },
    async [Symbol.asyncDispose]() {
      socket.close();
      await once(socket, "close");
    },
  };
}

/** How a relay answers to a ticket: the status of its HTTP answer, a close code, or `welcome`. */
export async function presentTicket(
  relayPort: number,
  ticket: string | undefined,
): Promise<number | "welcome"> {
  const socket = openControl(relayPort, ticket);
  try {
    return await new Promise((resolve) => {
      socket.on("error", () => undefined);
      socket.once("unexpected-response", (_request, { statusCode }) => resolve(statusCode ?? 0));
      socket.once("message", () => resolve("welcome"));
      socket.once("close", (code) => resolve(code));
    });
  } finally {
    socket.terminate();
  }
}

export async function connectRawAgent(relayPort: number, access: RelayAccess): Promise<RawAgent> {
  const socket = openControl(relayPort, access.ticket);
  const messages: FromRelay[] = [];
  let closed: { code: number; reason: string } | undefined;
  socket.on("close", (code, reason) => (closed = { code, reason: reason.toString() }));
  socket.on("message", (data: Buffer, isBinary) => {
    if (!isBinary && data[0] === 0x7b) messages.push(FromRelay.parse(JSON.parse(String(data))));
  });
  const udp = await openProbe();
  await until(() => Promise.resolve(messages[0] ?? closed));
  const welcome = messages[0];
  if (welcome?.type !== "welcome" || welcome.kind !== "network")
    throw new Error(`no welcome: ${JSON.stringify(closed)}`);
  const key = Buffer.from(welcome.key, "base64");
  return {
    welcome,
    key,
    udp,
    messages,
    get closed() {
      return closed;
    },
    send: (message) => socket.send(JSON.stringify(message)),
    async bind() {
      udp.send(writeBind(welcome.association, Date.now(), key), relayPort);
      await until(() => Promise.resolve(udp.received.find((bytes) => readBound(bytes, key))));
    },
    async [Symbol.asyncDispose]() {
      socket.terminate();
      await udp[Symbol.asyncDispose]();
    },
  };
}

export function writeData(flow: number, payload: Uint8Array): Uint8Array {
  const bytes = Buffer.alloc(DATAGRAM_HEADER_BYTES + payload.byteLength);
  writeDatagramHeader(bytes, 0, { type: DATAGRAM.data, u16: 1, flow });
  bytes.set(payload, DATAGRAM_HEADER_BYTES);
  return bytes;
}

function openControl(relayPort: number, ticket: string | undefined): WebSocket {
  return new WebSocket(`ws://127.0.0.1:${relayPort}/agent`, [RELAY_SUBPROTOCOL], {
    headers: ticket === undefined ? {} : { authorization: `Bearer ${ticket}` },
    perMessageDeflate: false,
  });
}
