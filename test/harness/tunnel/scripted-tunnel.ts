/** A server that a test scripts frame by frame, for a real agent to connect to. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { WebSocketServer, type WebSocket } from "ws";
import { parseTarget } from "../../../agent/origin/target.ts";
import { HttpTunnel } from "../../../agent/tunnel/http-tunnel.ts";
import { CLOSE, type CloseName } from "../../../protocol/wire/close-codes.ts";
import {
  parseCodeAndText,
  FRAME,
  FrameWriter,
  SUBPROTOCOL,
  type Frame,
  type Welcome,
} from "../../../protocol/wire/frames.ts";
import { readFrames } from "../../../protocol/wire/read-frames.ts";
import { parseResponseHead, type ResponseHead } from "../../../protocol/wire/response-head.ts";
import {
  CONNECTION_WINDOW_BYTES,
  HEARTBEAT_INTERVAL_MS,
  HEARTBEAT_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
} from "../../../protocol/limits.ts";

export const WELCOME: Welcome = {
  protocol: 1,
  server: "scripted",
  capabilities: [],
  tunnelId: crypto.randomUUID(),
  agentId: crypto.randomUUID(),
  name: "shop",
  subdomain: "shop",
  url: "http://shop.localhost",
  streamWindow: STREAM_WINDOW_BYTES,
  connectionWindow: CONNECTION_WINDOW_BYTES,
  heartbeatIntervalMs: HEARTBEAT_INTERVAL_MS,
  heartbeatTimeoutMs: HEARTBEAT_TIMEOUT_MS,
};

/** The server's end of one agent's connection. */
export class ScriptedConnection {
  readonly socket: WebSocket;
  readonly #frames: Frame[] = [];
  readonly closed: Promise<number>;
  #wake: (() => void) | undefined;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on("message", (data: Buffer, isBinary) => {
      if (isBinary) readFrames(data, (frame) => this.#frames.push(frame));
      this.#wake?.();
    });
    this.closed = once(socket, "close").then(([code]) => code as number);
  }

  send(write: (writer: FrameWriter) => void): void {
    const writer = new FrameWriter();
    write(writer);
    this.socket.send(Buffer.from(writer.take()));
  }

  /** The next frame other than credit. */
  async next(): Promise<Frame> {
    for (;;) {
      const frame = this.#frames.shift();
      if (frame && frame.type !== FRAME.credit) return frame;
      if (!frame) await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  /** Waits for the end of a request: its response, or the code of its reset. */
  async waitForOutcome(
    stream: number,
  ): Promise<{ status: number; body: string } | { reset: number }> {
    let status = 0;
    let body = "";
    for (;;) {
      const frame = await this.next();
      if (frame.stream !== stream) continue;
      if (frame.type === FRAME.reset) return { reset: parseCodeAndText(frame.payload)!.code };
      if (frame.type === FRAME.response)
        ({ status } = parseResponseHead(frame.payload) as ResponseHead);
      if (frame.type === FRAME.data) body += Buffer.from(frame.payload).toString();
      if (frame.flags & 1) return { status, body };
    }
  }

  request(stream: number, head: string[], flags = 1): void {
    this.send((writer) => writer.writeJson(FRAME.request, flags, stream, head));
  }
}

export interface ScriptedTunnel extends AsyncDisposable {
  /** The agent under test. */
  agent: HttpTunnel;
  /** Accepts and welcomes the agent's next connection. */
  connection(): Promise<ScriptedConnection>;
  /** Closes the agent's next connection instead of welcoming it. */
  refuse(name: CloseName, explanation: string): Promise<void>;
}

/**
 * @param origin the local server behind the agent: its port, or its address.
 * @param announced replaces fields of the server's welcome.
 */
export async function startScriptedTunnel(
  origin: number | string,
  announced: Partial<Welcome> = {},
): Promise<ScriptedTunnel> {
  const server = new WebSocketServer({
    port: 0,
    host: "127.0.0.1",
    handleProtocols: () => SUBPROTOCOL,
  });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const agent = new HttpTunnel({
    target: parseTarget(typeof origin === "string" ? origin : `127.0.0.1:${origin}`)!,
    server: new URL(`http://127.0.0.1:${port}`),
    token: Buffer.from("token"),
    renewal: "Get a new token.",
    authorities: undefined,
    originOptions: { "host-header": "preserve" },
    settings: {},
  });
  async function accept(): Promise<ScriptedConnection> {
    const [socket] = (await once(server, "connection")) as [WebSocket];
    const connection = new ScriptedConnection(socket);
    const hello = await connection.next();
    if (hello.type !== FRAME.hello) throw new Error("the agent sent no hello");
    return connection;
  }
  return {
    agent,
    async connection() {
      const connection = await accept();
      connection.send((writer) =>
        writer.writeJson(FRAME.welcome, 0, 0, { ...WELCOME, ...announced }),
      );
      return connection;
    },
    async refuse(name, explanation) {
      const connection = await accept();
      connection.socket.close(CLOSE[name], `${name}: ${explanation}`);
      await connection.closed;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of server.clients) socket.terminate();
      await agent.close();
      server.close();
    },
  };
}
