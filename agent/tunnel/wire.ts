/**
 * The agent's end of one connection to a tunnel: hello and welcome, frames in and out, heartbeat. The tunnel opens streams
 * on it: one for each request and each TCP connection.
 */
import WebSocket, { type RawData } from "ws";
import { CLOSE } from "../../protocol/wire/close-codes.ts";
import { SendWindows } from "../../protocol/wire/flow-control.ts";
import {
  parseCodeAndText,
  parseCredit,
  FRAME,
  parseJsonPayload,
  PING,
  PONG,
  PROTOCOL_VERSION,
  parseRequestHead,
  RESET,
  STATUS_CAPABILITY,
  StreamPeer,
  SUBPROTOCOL,
  StatusUpdate,
  Welcome,
  WelcomeVersion,
  type AgentHealth,
  type Frame,
  type FrameWriter,
  type Hello,
} from "../../protocol/wire/frames.ts";
import { readFrames } from "../../protocol/wire/read-frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  HEARTBEAT_INTERVAL_MS,
  HEARTBEAT_TIMEOUT_MS,
  STREAM_WINDOW_BYTES,
  WIRE_MESSAGE_MAX_BYTES,
} from "../../protocol/limits.ts";
import { LOCAL_SERVER_MAX_CHARS } from "../../protocol/local-server.ts";
import { explainError } from "../error-message.ts";
import { FrameSender } from "./frame-sender.ts";
import { collectAfterTransfer } from "./garbage-collection.ts";
import { ElapsedTime } from "./elapsed-time.ts";
import { buildHello } from "./hello.ts";
import type { TrustedAuthorities } from "../outgoing/trusted-authorities.ts";
import { openWebSocket, skipMasking } from "../websocket.ts";

/** How often the agent checks whether a heartbeat is due, and whether the server is silent. */
const HEARTBEAT_CHECK_MS = HEARTBEAT_INTERVAL_MS / 5;

/** The agent's end of one stream. The wire calls its methods; none of them may throw. */
export interface Stream {
  /** Whether a drain waits for it: a request ends by itself, a WebSocket and a browser's event stream do not. */
  readonly isDrainable: boolean;
  /** Called once the wire has registered the stream, so that the stream may end itself. */
  start(): void;
  receive(frame: Frame): void;
  /** The tunnel reset the stream, or the connection ended. @param reason for the user. */
  abort(reason: string): void;
}

/** A visitor's request, as the tunnel sends it. */
export interface RequestOpening {
  /** As `parseRequestHead` returns it. */
  head: string[];
  /** The flags of the frame. */
  flags: number;
  /** undefined: the server is of an earlier version. */
  requestId: string | undefined;
}

/** The frame that opens a stream. */
type StreamOpening =
  | ({ type: "request" } & RequestOpening)
  /** A TCP connection of a client at the address `peer`. */
  | { type: "connect"; peer: StreamPeer };

/** @returns the stream that answers, or null when the agent accepts no more streams. */
export type StreamOpener = (wire: Wire, id: number, opening: StreamOpening) => Stream | null;

interface WireEvents {
  onWelcome(welcome: Welcome): void;
  onStatus(status: StatusUpdate): void;
  /** The server's welcome has another version of the protocol. */
  onOtherVersion(version: number): void;
  openStream: StreamOpener;
  /** The server asks for a reconnect once the streams in flight have ended. */
  onGoingAway(): void;
  /** @param ms how long a heartbeat took to the server and back. */
  onLatency(ms: number): void;
  onClose(code: number, reason: string): void;
}

interface WireOptions {
  /** The address of the connect route, with its query. */
  url: URL;
  /** Sent with the connect request. */
  headers: Record<string, string>;
  token: Buffer;
  authorities: TrustedAuthorities | undefined;
  /** Sent in the hello, besides those that every agent has. */
  capabilities: string[];
  /** The local server, as it is printed. */
  local: string;
  /** @returns the pool in the hello. undefined: the agent is in none. */
  getPool?: (() => Hello["pool"]) | undefined;
}

/** The part of the wire that the stream of a request uses. */
export type StreamWire = Pick<Wire, "windows" | "send" | "finish" | "reset">;

export class Wire {
  windows = new SendWindows(0, 0);
  /** The capabilities of the tunnel, from its welcome. */
  tunnelCapabilities: string[] = [];
  readonly #socket: WebSocket;
  readonly #events: WireEvents;
  readonly #capabilities: string[];
  readonly #local: string;
  readonly #getPool: WireOptions["getPool"];
  readonly #streams = new Map<number, Stream>();
  readonly #sender: FrameSender;
  readonly #heartbeat: NodeJS.Timeout;
  readonly #sinceReceived = new ElapsedTime();
  readonly #sincePing = new ElapsedTime();
  /** When the heartbeat was sent that is not yet answered, on the clock of `performance.now()`. */
  #unansweredAtMs: number | undefined;
  #isWelcomed = false;
  #isConnectionRefused = false;
  #problem = "";

  constructor(
    { url, headers, token, authorities, capabilities, local, getPool }: WireOptions,
    events: WireEvents,
  ) {
    this.#events = events;
    this.#capabilities = capabilities;
    this.#local = local;
    this.#getPool = getPool;
    this.#socket = openWebSocket(url, SUBPROTOCOL, token.toString("base64url"), {
      maxPayload: WIRE_MESSAGE_MAX_BYTES,
      skipUTF8Validation: true,
      headers,
      authorities,
      ...skipMasking(url),
    });
    this.#sender = new FrameSender(this.#socket, {
      onFull: () => this.windows.pause(),
      onSpace: () => this.windows.resume(),
    });
    this.#socket.on("open", () => this.#sendHello());
    this.#socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    // A close event follows; its code is only 1006.
    this.#socket.on("error", (error: NodeJS.ErrnoException) => {
      this.#problem = explainError(error);
      this.#isConnectionRefused = error.code === "ECONNREFUSED";
    });
    this.#socket.on("close", (code, reason) =>
      this.#handleClose(code, reason.toString() || this.#problem),
    );
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_CHECK_MS);
  }

  /** Whether nothing listened at the server's address: the server restarts, or is stopped. */
  get isConnectionRefused(): boolean {
    return this.#isConnectionRefused;
  }

  /** How many open streams a drain waits for. */
  get drainableStreams(): number {
    return [...this.#streams.values()].filter((stream) => stream.isDrainable).length;
  }

  // ── Called by streams ──

  /** A connection with a single stream in flight never waits for further frames. */
  send(write: (writer: FrameWriter) => void): void {
    this.#sender.send(write, this.#streams.size > 1 ? "heavy" : "light");
  }

  /** The stream has ended on both sides. Without other streams its last frames are sent at once. */
  finish(id: number): void {
    this.#streams.delete(id);
    if (this.#streams.size === 0) this.#sender.flush();
  }

  reset(id: number, code: number, reason: string): void {
    if (!this.#streams.delete(id)) return;
    this.windows.drop(id);
    this.send((writer) => writer.writeCodeAndText(FRAME.reset, id, code, reason));
  }

  // ── Called by the connection ──

  /** Announces that the agent stops: visitors need not wait for a reconnect, and other agents of a pool take over. */
  sendGoingAway(reason: string): void {
    this.send((writer) => writer.writeText(FRAME.goingAway, 0, 0, reason));
  }

  /** To a tunnel whose welcome lists the capability for pools. */
  sendHealth(health: AgentHealth): void {
    if (!this.#isWelcomed) return;
    this.send((writer) => writer.writeJson(FRAME.health, 0, 0, health));
  }

  /** @param reason at most `CLOSE_REASON_MAX_BYTES` long, so none of the texts that a server sends. */
  close(reason: string): void {
    this.#sender.flush();
    this.#socket.close(1000, reason);
  }

  /** Ends a connection whose server does not answer. */
  terminate(): void {
    this.#socket.terminate();
  }

  // ── Inside ──

  #sendHello(): void {
    const pool = this.#getPool?.();
    const hello = buildHello({
      capabilities: [...this.#capabilities, STATUS_CAPABILITY],
      connectionWindow: CONNECTION_WINDOW_BYTES,
      ...(this.#local.length <= LOCAL_SERVER_MAX_CHARS && { local: this.#local }),
      ...(pool && { pool }),
    });
    this.send((writer) => writer.writeJson(FRAME.hello, 0, 0, hello));
    this.#sender.flush();
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#sinceReceived.restart();
    if (!isBinary) return this.#receiveText(data);
    collectAfterTransfer((data as Buffer).byteLength);
    if (!readFrames(data as Buffer, (frame) => this.#deliver(frame)))
      this.#closeForViolation("the server sent a frame that can't be read");
  }

  #deliver(frame: Frame): void {
    switch (frame.type) {
      case FRAME.welcome:
        return this.#receiveWelcome(frame);
      case FRAME.request:
      case FRAME.connect:
        return this.#openStream(frame);
      case FRAME.credit: {
        const bytes = parseCredit(frame.payload);
        if (bytes === null || !this.windows.addCredit(frame.stream, bytes))
          this.#closeForViolation("the server sent invalid credit");
        return;
      }
      case FRAME.reset: {
        const stream = this.#streams.get(frame.stream);
        this.#streams.delete(frame.stream);
        // In this order: dropping the window wakes a waiting sender, which must already be aborted.
        stream?.abort(parseCodeAndText(frame.payload)?.text || "the visitor disconnected");
        this.windows.drop(frame.stream);
        return;
      }
      case FRAME.status: {
        const status = StatusUpdate.safeParse(parseJsonPayload(frame.payload));
        // It is only shown, so a later version may change it.
        if (status.success) this.#events.onStatus(status.data);
        return;
      }
      case FRAME.goingAway:
        return this.#events.onGoingAway();
      default:
        this.#streams.get(frame.stream)?.receive(frame);
    }
  }

  #receiveWelcome(frame: Frame): void {
    const payload = parseJsonPayload(frame.payload);
    const { protocol } = WelcomeVersion.safeParse(payload).data ?? {};
    if (protocol !== undefined && protocol !== PROTOCOL_VERSION)
      return this.#events.onOtherVersion(protocol);
    const welcome = Welcome.safeParse(payload);
    if (!welcome.success || this.#isWelcomed)
      return this.#closeForViolation("the server sent a welcome that can't be read");
    this.#isWelcomed = true;
    const { streamWindow, connectionWindow, capabilities } = welcome.data;
    this.tunnelCapabilities = capabilities;
    // What the server does not read waits in this process, so larger windows than the agent's own are not used.
    this.windows = new SendWindows(
      Math.min(streamWindow, STREAM_WINDOW_BYTES),
      Math.min(connectionWindow, CONNECTION_WINDOW_BYTES),
    );
    this.#events.onWelcome(welcome.data);
    // At once, because the latency is shown to a person.
    this.#sendPing();
  }

  #receiveText(data: RawData): void {
    if (this.#unansweredAtMs === undefined || (data as Buffer).toString("latin1") !== PONG) return;
    const ms = performance.now() - this.#unansweredAtMs;
    this.#unansweredAtMs = undefined;
    this.#events.onLatency(ms);
  }

  #openStream(frame: Frame): void {
    const opening = parseStreamOpening(frame);
    if (!opening || this.#streams.has(frame.stream))
      return this.#closeForViolation("the server sent a request that can't be read");
    const stream = this.#events.openStream(this, frame.stream, opening);
    if (!stream) {
      return this.send((w) =>
        w.writeCodeAndText(
          FRAME.reset,
          frame.stream,
          RESET.refused,
          "the agent accepts no more requests on this connection now",
        ),
      );
    }
    this.#streams.set(frame.stream, stream);
    stream.start();
  }

  #closeForViolation(reason: string): void {
    this.#socket.close(CLOSE.protocol_error, `protocol_error: ${reason}`);
  }

  #beat(): void {
    if (this.#sinceReceived.ms > HEARTBEAT_TIMEOUT_MS) return this.terminate();
    if (this.#sincePing.ms >= HEARTBEAT_INTERVAL_MS) this.#sendPing();
  }

  #sendPing(): void {
    this.#sincePing.restart();
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    // An answer belongs to the oldest heartbeat that has none.
    this.#unansweredAtMs ??= performance.now();
    this.#socket.send(PING);
  }

  #handleClose(code: number, reason: string): void {
    clearInterval(this.#heartbeat);
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.abort("the connection to the server ended");
    this.windows.close();
    this.#events.onClose(code, reason);
  }
}

function parseStreamOpening(frame: Frame): StreamOpening | null {
  if (frame.type === FRAME.connect) {
    const peer = StreamPeer.safeParse(parseJsonPayload(frame.payload));
    return peer.success ? { type: "connect", peer: peer.data } : null;
  }
  const request = parseRequestHead(frame.payload, frame.flags);
  return request && { type: "request", ...request, flags: frame.flags };
}
