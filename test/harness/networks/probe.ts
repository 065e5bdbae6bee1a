/** Sends arbitrary datagrams and tickets to a relay, as any unauthenticated sender can. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { WebSocket } from "ws";
import { RELAY_SUBPROTOCOL } from "../../../protocol/relay/datagrams.ts";

export interface UdpProbe extends AsyncDisposable {
  port: number;
  /** All datagrams received. */
  received: Buffer[];
  readonly sentBytes: number;
  readonly receivedBytes: number;
  send(bytes: Uint8Array, port: number): void;
}

/** A UDP socket that sends any bytes to ports of this machine and stores all responses. */
export async function openProbe(): Promise<UdpProbe> {
  const socket = createSocket("udp4");
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

/** Presents a ticket to a relay. @returns its HTTP status, a close code, or `welcome`. */
export async function presentTicket(
  relayPort: number,
  ticket: string | undefined,
): Promise<number | "welcome"> {
  const socket = new WebSocket(`ws://127.0.0.1:${relayPort}/agent`, [RELAY_SUBPROTOCOL], {
    headers: ticket === undefined ? {} : { authorization: `Bearer ${ticket}` },
  });
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
