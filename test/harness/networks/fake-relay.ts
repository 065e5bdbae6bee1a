/** A minimal UDP side of a relay for tests of the agent's UDP path: it answers BIND and stores what it receives. */
import { randomBytes } from "node:crypto";
import { createSocket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";
import {
  DATAGRAM,
  readBind,
  readDatagramHeader,
  writeBound,
  writeDatagramHeader,
} from "../../../protocol/relay/datagrams.ts";
import { DATAGRAM_HEADER_BYTES } from "../../../protocol/relay/limits.ts";

export interface FakeRelay extends AsyncDisposable {
  port: number;
  association: number;
  key: Buffer;
  /** Counters of valid BINDs, in the order of arrival. */
  binds: number[];
  /** Their source ports. */
  sources: number[];
  datagrams: { flow: number; payload: string }[];
  /** A `false` leaves BINDs unanswered. */
  isAnswering: boolean;
  /** Sends a datagram to the source of the last BIND. */
  send(flow: number, payload: string, sequence?: number): void;
  /** Sends any bytes to the same address. */
  sendRaw(bytes: Uint8Array): void;
}

export async function startFakeRelay(): Promise<FakeRelay> {
  const socket = createSocket("udp4");
  socket.on("error", () => undefined);
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  let agent: RemoteInfo | undefined;
  let sequence = 0;
  const relay: FakeRelay = {
    port: socket.address().port,
    association: 0xffff_fffe,
    key: randomBytes(32),
    binds: [],
    sources: [],
    datagrams: [],
    isAnswering: true,
    send(flow, payload, number = (sequence += 1)) {
      const bytes = Buffer.alloc(DATAGRAM_HEADER_BYTES + payload.length);
      writeDatagramHeader(bytes, 0, {
        type: DATAGRAM.data,
        sequenceOrLength: number & 0xffff,
        flow,
      });
      bytes.write(payload, DATAGRAM_HEADER_BYTES);
      relay.sendRaw(bytes);
    },
    sendRaw(bytes) {
      if (agent) socket.send(bytes, agent.port, agent.address);
    },
    async [Symbol.asyncDispose]() {
      socket.close();
      await once(socket, "close");
    },
  };
  socket.on("message", (bytes, source) => {
    const header = readDatagramHeader(bytes);
    if (header?.type === DATAGRAM.data) {
      const payload = bytes.subarray(DATAGRAM_HEADER_BYTES).toString();
      relay.datagrams.push({ flow: header.flow, payload });
      return;
    }
    const counter = readBind(bytes, relay.key);
    if (counter === null || header?.flow !== relay.association) return;
    relay.binds.push(counter);
    relay.sources.push(source.port);
    agent = source;
    if (!relay.isAnswering) return;
    const address = Buffer.alloc(16);
    socket.send(
      writeBound(relay.association, { counter, address, port: source.port }, relay.key),
      source.port,
      source.address,
    );
  });
  return relay;
}
