/**
 * The agent's end of one connection to a tunnel: hello and welcome, frames in and out, heartbeat. What runs
 * over it are streams, opened by the tunnel's requests.
 */
import WebSocket, { type RawData } from "ws";
import { HttpsProxyAgent } from "https-proxy-agent";
import { getProxyForUrl } from "proxy-from-env";
import { CLOSE } from "../protocol/wire/close-codes.ts";
import { SendWindows } from "../protocol/wire/flow.ts";
import {
  parseCredit,
  FRAME,
  FrameWriter,
  parseJsonPayload,
  PING,
  PROTOCOL_VERSION,
  readFrames,
  parseRequestHead,
  RESET,
  StreamPeer,
  SUBPROTOCOL,
  Welcome,
  type Frame,
  type Hello,
} from "../protocol/wire/frames.ts";
import {
  CONNECTION_WINDOW_BYTES,
  HEARTBEAT_INTERVAL_MS,
  HEARTBEAT_TIMEOUT_MS,
  HELLO_MAX_MS,
  STREAM_WINDOW_BYTES,
  WIRE_MESSAGE_MAX_BYTES,
} from "../protocol/limits.ts";
import { SERVICE_VERSION } from "../protocol/version.ts";
import { countTransfer } from "./transfer-garbage.ts";

/** Under load an agent gathers frames for this long before it sends them as one message. */
const WIRE_BATCH_MS = 1;

/** The agent's end of one stream. The wire calls these; none may throw. */
export interface Stream {
  /** Whether it ends by itself: a request does, a WebSocket does not. */
  readonly isDrainable: boolean;
  /** Begins: from here on the wire knows the stream, so that it can end it. */
  start(): void;
  receive(frame: Frame): void;
  /** The tunnel gave the stream up, or the connection is gone. */
  abort(): void;
}

/** What the tunnel asks of a new stream. */
export type StreamRequest =
  | { type: "request"; head: string[]; flags: number }
  /** A TCP connection, of a client that came from there. */
  | { type: "connect"; peer: StreamPeer };

/** @returns the stream that answers, or null when nothing more is accepted. */
export type StreamOpener = (wire: Wire, id: number, opening: StreamRequest) => Stream | null;

export interface WireEvents {
  onWelcome(welcome: Welcome): void;
  openStream: StreamOpener;
  /** The tunnel asks for a reconnect once what is in flight is done. */
  onGoingAway(reason: string): void;
  onClose(code: number, reason: string): void;
}

export class Wire {
  windows = new SendWindows(0, 0);
  readonly #socket: WebSocket;
  readonly #events: WireEvents;
  readonly #capabilities: string[];
  readonly #streams = new Map<number, Stream>();
  readonly #writer = new FrameWriter();
  readonly #heartbeat: NodeJS.Timeout;
  #isFlushScheduled = false;
  #flushedAtMs = 0;
  #receivedAtMs = Date.now();
  #pingedAtMs = Date.now();
  #isWelcomed = false;
  #problem = "";

  /** @param url of the connect route, with what the agent asks for in its query. */
  constructor(url: URL, token: Buffer, capabilities: string[], events: WireEvents) {
    this.#events = events;
    this.#capabilities = capabilities;
    const proxy = getProxyForUrl(url.href.replace(/^ws/, "http"));
    this.#socket = new WebSocket(url.href, SUBPROTOCOL, {
      headers: { authorization: `Bearer ${token.toString("base64url")}` },
      agent: proxy === "" ? undefined : new HttpsProxyAgent(proxy),
      handshakeTimeout: HELLO_MAX_MS,
      maxPayload: WIRE_MESSAGE_MAX_BYTES,
      perMessageDeflate: false,
      skipUTF8Validation: true,
      ...(isPrivateTransport(url) ? { generateMask: clearMask } : {}),
    });
    this.#socket.on("open", () => this.#sendHello());
    this.#socket.on("message", (data, isBinary) => this.#receive(data, isBinary));
    // A close event follows, which knows no more than 1006.
    this.#socket.on("error", (error) => (this.#problem = problemOf(error)));
    this.#socket.on("close", (code, reason) =>
      this.#closed(code, reason.toString() || this.#problem),
    );
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_INTERVAL_MS / 5);
  }

  /** How many streams will end by themselves, so that one who leaves may wait for them. */
  get drainableStreams(): number {
    return [...this.#streams.values()].filter((stream) => stream.isDrainable).length;
  }

  // ── Called by streams ──

  /**
   * Frames share messages, because each message is an event to the tunnel and events are what it runs out
   * of: those of one turn of the event loop always, and under load those of a millisecond. A connection
   * with a single stream in flight waits for nothing.
   */
  send(write: (writer: FrameWriter) => void): void {
    write(this.#writer);
    if (this.#writer.length >= WIRE_MESSAGE_MAX_BYTES / 4) return this.#flushNow();
    if (this.#isFlushScheduled) return;
    this.#isFlushScheduled = true;
    const isBusy = this.#streams.size > 1 && performance.now() - this.#flushedAtMs < WIRE_BATCH_MS;
    if (isBusy) setTimeout(() => this.#flushNow(), WIRE_BATCH_MS);
    else setImmediate(() => this.#flushNow());
  }

  /** The stream ended on both sides. Its last frames need not wait when no other could share their message. */
  finish(id: number): void {
    this.#streams.delete(id);
    if (this.#streams.size === 0) this.#flushNow();
  }

  reset(id: number, code: number, reason: string): void {
    if (!this.#streams.delete(id)) return;
    this.windows.drop(id);
    this.send((writer) => writer.writeCodeAndText(FRAME.reset, id, code, reason));
  }

  // ── Called by the connection ──

  /** Says that the agent leaves for good, and closes: visitors need not wait for its return. */
  leave(reason: string): void {
    this.send((writer) => writer.writeText(FRAME.goingAway, 0, 0, reason));
    this.close(reason);
  }

  close(reason: string): void {
    this.#flushNow();
    this.#socket.close(1000, reason);
  }

  /** Ends a connection whose other end does not answer. */
  terminate(): void {
    this.#socket.terminate();
  }

  // ── Inside ──

  #sendHello(): void {
    const hello: Hello = {
      protocol: PROTOCOL_VERSION,
      agent: `underpass/${SERVICE_VERSION} (${process.platform}; node ${process.versions.node})`,
      capabilities: this.#capabilities,
      streamWindow: STREAM_WINDOW_BYTES,
      connectionWindow: CONNECTION_WINDOW_BYTES,
    };
    this.send((writer) => writer.writeJson(FRAME.hello, 0, 0, hello));
    this.#flushNow();
  }

  #flushNow(): void {
    this.#isFlushScheduled = false;
    if (this.#writer.length === 0) return;
    this.#flushedAtMs = performance.now();
    const message = this.#writer.take();
    countTransfer(message.byteLength);
    if (this.#socket.readyState !== WebSocket.OPEN) return;
    this.#socket.send(message, () => this.#writer.recycle(message));
  }

  #receive(data: RawData, isBinary: boolean): void {
    this.#receivedAtMs = Date.now();
    if (!isBinary) return;
    countTransfer((data as Buffer).byteLength);
    if (!readFrames(data as Buffer, (frame) => this.#deliver(frame)))
      this.#violation("unreadable frame");
  }

  #deliver(frame: Frame): void {
    switch (frame.type) {
      case FRAME.welcome:
        return this.#receiveWelcome(frame);
      case FRAME.request:
      case FRAME.connect:
        return this.#receiveStreamRequest(frame);
      case FRAME.credit: {
        const bytes = parseCredit(frame.payload);
        if (bytes === null || !this.windows.addCredit(frame.stream, bytes))
          this.#violation("bad credit");
        return;
      }
      case FRAME.reset: {
        const stream = this.#streams.get(frame.stream);
        this.#streams.delete(frame.stream);
        // In this order: dropping wakes a sender that waits, which must know by then that it is over.
        stream?.abort();
        this.windows.drop(frame.stream);
        return;
      }
      case FRAME.goingAway:
        return this.#events.onGoingAway(Buffer.from(frame.payload).toString());
      default:
        this.#streams.get(frame.stream)?.receive(frame);
    }
  }

  #receiveWelcome(frame: Frame): void {
    const welcome = Welcome.safeParse(parseJsonPayload(frame.payload));
    if (!welcome.success || this.#isWelcomed) return this.#violation("unreadable welcome");
    this.#isWelcomed = true;
    this.windows = new SendWindows(welcome.data.streamWindow, welcome.data.connectionWindow);
    this.#events.onWelcome(welcome.data);
  }

  #receiveStreamRequest(frame: Frame): void {
    const opening = parseStreamRequest(frame);
    if (!opening || this.#streams.has(frame.stream)) return this.#violation("unreadable request");
    const stream = this.#events.openStream(this, frame.stream, opening);
    if (!stream) {
      return this.send((w) =>
        w.writeCodeAndText(FRAME.reset, frame.stream, RESET.refused, "leaving"),
      );
    }
    this.#streams.set(frame.stream, stream);
    stream.start();
  }

  #violation(reason: string): void {
    this.#socket.close(CLOSE.protocol_error, `protocol_error: ${reason}`);
  }

  #beat(): void {
    const now = Date.now();
    if (now - this.#receivedAtMs > HEARTBEAT_TIMEOUT_MS) return this.terminate();
    if (now - this.#pingedAtMs < HEARTBEAT_INTERVAL_MS) return;
    this.#pingedAtMs = now;
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(PING);
  }

  #closed(code: number, reason: string): void {
    clearInterval(this.#heartbeat);
    const streams = [...this.#streams.values()];
    this.#streams.clear();
    for (const stream of streams) stream.abort();
    this.windows.close();
    this.#events.onClose(code, reason);
  }
}

function parseStreamRequest(frame: Frame): StreamRequest | null {
  if (frame.type === FRAME.connect) {
    const peer = StreamPeer.safeParse(parseJsonPayload(frame.payload));
    return peer.success ? { type: "connect", peer: peer.data } : null;
  }
  const head = parseRequestHead(frame.payload);
  return head && { type: "request", head, flags: frame.flags };
}

/**
 * Masking (RFC 6455 §5.3) keeps a hostile page from writing chosen bytes past a proxy that does not know
 * WebSockets. Where no proxy can see the bytes, it only costs time: inside TLS, and within one machine.
 */
export function isPrivateTransport(url: URL): boolean {
  return url.protocol === "wss:" || url.hostname === "127.0.0.1" || url.hostname === "[::1]";
}

export function clearMask(mask: Buffer): void {
  mask.fill(0);
}

function problemOf(error: Error & { code?: string }): string {
  if (error instanceof AggregateError) return problemOf(error.errors[0] as Error);
  return error.message;
}
