/** A minimal agent for tests of the relay: sends and receives single messages and datagrams. */
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { vi } from "vitest";
import { WebSocket } from "ws";
import type {
  AgentToRelayMessage,
  RelayToAgentMessage,
  NetworkWelcome,
} from "../../../protocol/relay/control.ts";
import {
  DATAGRAM,
  RELAY_SUBPROTOCOL,
  readBound,
  readDatagramHeader,
  readDatagrams,
  writeBind,
  writeDatagramHeader,
} from "../../../protocol/relay/datagrams.ts";
import { DATAGRAM_HEADER_BYTES } from "../../../protocol/relay/limits.ts";
import { WAIT_OPTIONS } from "../timeouts.ts";

export interface ReceivedDatagram {
  flow: number;
  payload: Buffer;
  over: "udp" | "websocket";
}

export class RelayAgent implements AsyncDisposable {
  readonly messages: RelayToAgentMessage[] = [];
  readonly datagrams: ReceivedDatagram[] = [];
  /** Counters of the received BOUNDs. */
  readonly bound: number[] = [];
  /** Bytes received over UDP. */
  udpBytes = 0;
  closed: { code: number; reason: string } | null = null;
  readonly socket: WebSocket;
  udp: Socket | undefined;
  #counter = Date.now();

  constructor(
    relayUrl: string,
    ticket: string | null,
    protocol: string | null = RELAY_SUBPROTOCOL,
  ) {
    this.socket = new WebSocket(`${relayUrl}/agent`, protocol === null ? [] : [protocol], {
      headers: ticket === null ? {} : { authorization: `Bearer ${ticket}` },
    });
    this.socket.on("message", (data, isBinary) => {
      const bytes = data as Buffer;
      if (!isBinary) {
        this.messages.push(JSON.parse(bytes.toString()) as RelayToAgentMessage);
        return;
      }
      readDatagrams(bytes, ({ flow }, payload) =>
        this.datagrams.push({ flow, payload: Buffer.from(payload), over: "websocket" }),
      );
    });
    this.socket.on("close", (code, reason) => (this.closed = { code, reason: reason.toString() }));
    this.socket.on("error", () => {});
  }

  /** Resolves with the welcome; rejects when the relay closes instead. */
  async waitForWelcome<Kind extends "network" | "tunnel">(kind: Kind) {
    await this.waitUntil(() => this.messages.length > 0);
    const [welcome] = this.messages;
    if (welcome?.type !== "welcome" || welcome.kind !== kind) throw new Error("no welcome");
    return welcome as Extract<RelayToAgentMessage, { type: "welcome"; kind: Kind }>;
  }

  send(message: AgentToRelayMessage): void {
    this.socket.send(JSON.stringify(message));
  }

  /** Resolves when the relay has read everything that was sent so far. */
  async flush(): Promise<void> {
    const pong = once(this.socket, "pong");
    this.socket.ping();
    await pong;
  }

  async waitForClose(): Promise<{ code: number; reason: string }> {
    await vi.waitUntil(() => this.closed !== null, WAIT_OPTIONS);
    return this.closed!;
  }

  /** Waits for a condition; rejects when the relay closes first. */
  async waitUntil(condition: () => boolean): Promise<void> {
    await vi.waitUntil(() => {
      if (condition()) return true;
      if (this.closed) throw new Error(`closed: ${this.closed.code} ${this.closed.reason}`);
      return false;
    }, WAIT_OPTIONS);
  }

  /** Opens a UDP socket and binds it to the association with a BIND. */
  async bind(welcome: NetworkWelcome): Promise<Socket> {
    const udp = createSocket("udp4");
    udp.on("message", (message) => this.#receive(message, welcome));
    udp.bind(0, "127.0.0.1");
    await once(udp, "listening");
    this.udp?.close();
    this.udp = udp;
    const before = this.bound.length;
    udp.send(this.nextBind(welcome), welcome.udpPort, "127.0.0.1");
    await this.waitUntil(() => this.bound.length > before);
    return udp;
  }

  nextBind({ association, key }: NetworkWelcome): Uint8Array {
    this.#counter += 1;
    return writeBind(association, this.#counter, Buffer.from(key, "base64"));
  }

  /** Sends a datagram of a flow over UDP. */
  sendUdp(welcome: NetworkWelcome, flow: number, payload: Uint8Array, from = this.udp): void {
    from?.send(toDatagram(flow, 0, payload), welcome.udpPort, "127.0.0.1");
  }

  sendWebSocket(flow: number, payload: Uint8Array): void {
    this.socket.send(toDatagram(flow, payload.byteLength, payload));
  }

  /** Waits until the relay announces the flow of a peer's port. */
  async waitForFlow(port: number) {
    await this.waitUntil(() => this.#findFlow(port) !== undefined);
    return this.#findFlow(port)!;
  }

  /** Waits until the flow of a peer's port has a tag: the peer is confirmed. */
  async waitForTaggedFlow(port: number) {
    await this.waitUntil(() => Boolean(this.#findFlow(port)?.tag));
    return this.#findFlow(port)!;
  }

  async [Symbol.asyncDispose]() {
    this.udp?.close();
    this.socket.terminate();
    if (this.socket.readyState !== WebSocket.CLOSED) await once(this.socket, "close");
  }

  /** The newest message of the relay about the flow of a peer's port. */
  #findFlow(port: number) {
    return this.messages
      .flatMap((message) => (message.type === "flow" ? [message.flow] : []))
      .findLast((flow) => flow.port === port);
  }

  #receive(message: Buffer, { key }: NetworkWelcome): void {
    this.udpBytes += message.length;
    const header = readDatagramHeader(message);
    if (header?.type === DATAGRAM.bound) {
      const bound = readBound(message, Buffer.from(key, "base64"));
      if (bound) this.bound.push(bound.counter);
    } else if (header?.type === DATAGRAM.data) {
      const payload = message.subarray(DATAGRAM_HEADER_BYTES);
      this.datagrams.push({ flow: header.flow, payload, over: "udp" });
    }
  }
}

function toDatagram(flow: number, sequenceOrLength: number, payload: Uint8Array): Buffer {
  const bytes = Buffer.alloc(DATAGRAM_HEADER_BYTES + payload.byteLength);
  writeDatagramHeader(bytes, 0, { type: DATAGRAM.data, sequenceOrLength, flow });
  bytes.set(payload, DATAGRAM_HEADER_BYTES);
  return bytes;
}
