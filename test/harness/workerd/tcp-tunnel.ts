/** A TCP tunnel inside workerd. The test plays its agent and clients frame by frame, its relay message by message. */
import {
  CLIENT_CONNECT_URL,
  CLIENT_HEADER,
  type AgentAdmission,
  type ClientAdmission,
} from "../../../durable-objects/tunnel/admission.ts";
import {
  CLIENT_STREAM,
  ClientWelcome,
  parseCredit,
  FLAG,
  FRAME,
  parseJsonPayload,
  StreamPeer,
  STREAMS_SUBPROTOCOL,
  TCP_CAPABILITY,
  Welcome,
  type Frame,
  type Hello,
  type ResetCode,
} from "../../../protocol/wire/frames.ts";
import { FRAME_DATA_MAX_BYTES, WIRE_MESSAGE_MAX_BYTES } from "../../../protocol/limits.ts";
import { LiveRelay } from "./live-relay.ts";
import { HELLO, LiveTunnel, RefusedError, TestAgent } from "./live-tunnel.ts";

export const TCP_HELLO: Hello = { ...HELLO, capabilities: [TCP_CAPABILITY] };

export class TcpTunnel extends LiveTunnel {
  readonly relay = new LiveRelay();

  override async agent(
    admission: Partial<AgentAdmission> = {},
    hello = TCP_HELLO,
  ): Promise<TestAgent> {
    const relay = { id: this.relay.id, port: 40_001 };
    const agent = await this.connect({ url: "tcp://relay:40001", relay, ...admission });
    agent.send((writer) => writer.writeJson(FRAME.hello, 0, 0, hello));
    agent.welcome = Welcome.parse(parseJsonPayload((await agent.next(FRAME.welcome)).payload));
    return agent;
  }

  /** A client's connection before its hello. */
  async connectClient(admission: Partial<ClientAdmission> = {}): Promise<TestClient> {
    const full: ClientAdmission = {
      tunnelId: this.id,
      address: "192.0.2.7",
      tokenNonce: "token-c",
      tokenExpiresAtMs: Date.now() + 3600_000,
      ...admission,
    };
    const answer = await this.stub.fetch(CLIENT_CONNECT_URL, {
      headers: {
        upgrade: "websocket",
        "sec-websocket-protocol": STREAMS_SUBPROTOCOL,
        [CLIENT_HEADER]: JSON.stringify(full),
      },
    });
    if (!answer.webSocket) throw new RefusedError(answer);
    return new TestClient(answer.webSocket);
  }

  /** A client after hello and welcome, and its stream at the agent. */
  async client(
    agent: TestAgent,
    admission: Partial<ClientAdmission> = {},
  ): Promise<{ client: TestClient; stream: number; peer: StreamPeer }> {
    const client = await this.connectClient(admission);
    client.hello();
    const { stream, payload } = await agent.next(FRAME.connect);
    client.welcomed = ClientWelcome.parse(
      parseJsonPayload((await client.next(FRAME.welcome)).payload),
    );
    return { client, stream, peer: StreamPeer.parse(parseJsonPayload(payload)) };
  }
}

/** A client uses the same frames as an agent. */
export class TestClient extends TestAgent {
  welcomed: ClientWelcome | undefined;

  hello(change: Partial<Hello> = {}): void {
    this.send((writer) => writer.writeJson(FRAME.hello, 0, 0, { ...HELLO, ...change }));
  }

  write(bytes: string | Uint8Array, flags = 0): void {
    sendData(this, CLIENT_STREAM, bytes, flags);
  }

  credit(bytes: number): void {
    this.send((writer) => writer.writeCredit(CLIENT_STREAM, bytes));
  }

  async resetCode(): Promise<ResetCode> {
    return (await this.nextCode(FRAME.reset)).code as ResetCode;
  }
}

/** Sends data in frames and messages of the sizes that the protocol allows. */
export function sendData(
  socket: TestAgent,
  stream: number,
  data: string | Uint8Array,
  flags = 0,
): void {
  const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
  let at = 0;
  do {
    socket.send((writer) => {
      const messageEnd = at + WIRE_MESSAGE_MAX_BYTES / 2;
      do {
        const part = bytes.subarray(at, at + FRAME_DATA_MAX_BYTES);
        at += part.byteLength;
        writer.writeBytes(FRAME.data, at >= bytes.byteLength ? flags : 0, stream, part);
      } while (at < Math.min(bytes.byteLength, messageEnd));
    });
  } while (at < bytes.byteLength);
}

/** Reads a stream's data up to a number of bytes or its end. Other frames are collected separately. */
export async function receive(socket: TestAgent, atMost = Infinity): Promise<ReceivedBytes> {
  const parts: Uint8Array[] = [];
  let length = 0;
  let isEnded = false;
  const others: Frame[] = [];
  while (!isEnded && length < atMost) {
    const frame = await socket.nextFrame();
    if (frame.type !== FRAME.data) others.push(frame);
    else {
      parts.push(frame.payload.slice());
      length += frame.payload.byteLength;
      isEnded = (frame.flags & FLAG.end) !== 0;
    }
  }
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return { bytes, isEnded, others };
}

export interface ReceivedBytes {
  bytes: Uint8Array;
  isEnded: boolean;
  others: Frame[];
}

export async function nextCredit(socket: TestAgent): Promise<{ stream: number; bytes: number }> {
  const { stream, payload } = await socket.next(FRAME.credit);
  return { stream, bytes: parseCredit(payload)! };
}

/** Faster than matchers, which compare each byte as a property. */
export function isEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.byteLength === b.byteLength && a.every((byte, at) => byte === b[at]);
}
