/**
 * One connection of a visitor, and its own connection to workerd, which is made when the first request is complete. So
 * a visitor who sends nothing, or sends slowly, costs workerd nothing. When the visitor leaves, the connection to workerd
 * is closed completely, which ends the visitor's requests there at once.
 */
import type { Socket } from "node:net";
import { toBuffer } from "./buffers.ts";
import { HeadBuffer } from "./head-buffer.ts";
import {
  BODY_PAUSE_MAX_MS,
  FIRST_HEAD_MAX_MS,
  LINGER_MAX_MS,
  LINGER_PAUSE_MAX_MS,
  PROGRAM_STALLED_MS,
  PROGRAM_UNREAD_MAX_MS,
  UNREAD_MAX_MS,
} from "./limits.ts";
import type { ConnectionKind, FrontProxyMetrics } from "./metrics/front-proxy-metrics.ts";
import { RequestObserver } from "./metrics/request-observer.ts";
import type { MessageReservation } from "./websockets/message-memory.ts";
import { ProgramMessages } from "./websockets/program-messages.ts";
import { createBodyReader, type BodyReader } from "./request-body.ts";
import { HEAD_MAX_BYTES, parseRequestHead, type RequestHead } from "./request-head.ts";
import {
  formatRefusal,
  HEAD_TOO_LARGE,
  INVALID_HEADS,
  TOO_SLOW,
  UNAVAILABLE,
  type Refusal,
} from "./refusals.ts";
import { readAfterFailedWrites } from "../../sockets/early-response.ts";
import { VisitorWebSocket } from "./websockets/visitor-web-socket.ts";
import { ACKNOWLEDGED_HEADER } from "../../protocol/acknowledgements.ts";
import type { RequestTrace } from "../../shared/tracing/request-trace.ts";
import { reset } from "../../sockets/splice.ts";
import { connectSocket, setReceiver } from "../../sockets/socket-reader.ts";

const SWITCHING = "HTTP/1.1 101";
const HEAD_END = "\r\n\r\n";
const ACKNOWLEDGED_FIELD = new RegExp(`\\r\\n${ACKNOWLEDGED_HEADER}:[^\\r]*`, "i");

/** What the next byte from the visitor belongs to. */
type Phase =
  | { kind: "head" }
  | { kind: "body"; body: BodyReader }
  /** The request is complete, and no other follows it. What the visitor still sends is dropped. */
  | { kind: "last" }
  /** The server decides whether the protocol changes. Bytes wait for its answer. */
  | { kind: "upgrade" }
  /** The connection belongs to another protocol, such as WebSocket. */
  | { kind: "upgraded" }
  /** The answer is sent, and what the visitor still sends is dropped. */
  | { kind: "lingering"; untilMs: number }
  | { kind: "closed" };

const HEAD: Phase = { kind: "head" };
const LAST: Phase = { kind: "last" };
const UPGRADE: Phase = { kind: "upgrade" };
const UPGRADED: Phase = { kind: "upgraded" };
const CLOSED: Phase = { kind: "closed" };

export interface VisitorConnectionOptions {
  /** The path of workerd's socket. */
  upstreamPath: string;
  /** The line of `CF_BLOB_HEADER` for workerd, with its line break. */
  cfBlobField: string;
  /** Random: what a visitor has read of a WebSocket is acknowledged with it. */
  acknowledgementKey: string;
  /** The host names of the API; all others lead to tunnels. */
  apiHosts: ReadonlySet<string>;
  metrics: FrontProxyMetrics;
  trace: RequestTrace;
  /** What the connection may hold of workerd's memory, as the WebSocket of a visitor or of a program. */
  createReservation(kind: "visitor" | "program"): MessageReservation;
  onClose(): void;
}

export class VisitorConnection {
  readonly #visitor: Socket;
  readonly #options: VisitorConnectionOptions;
  readonly #head = new HeadBuffer();
  readonly #requestObserver: RequestObserver;
  #upstream: Socket | undefined;
  #phase: Phase = HEAD;
  /** Bytes that arrived before the server decided about another protocol. */
  #heldBytes: Uint8Array | undefined;
  /** The last request, until the first byte of its response, if it may be sent again. */
  #repeatable: Buffer | undefined;
  /** Of the last request; true before the first one. */
  #hasResponseBegun = true;
  /** The start of the response to an upgrade, until its head is complete. */
  #upgradeResponse: Buffer | undefined;
  /** Of an upgraded connection to a tunnel. */
  #webSocket: VisitorWebSocket | undefined;
  /** Of another upgraded connection, such as an agent's. */
  #programMessages: ProgramMessages | undefined;
  /** Of workerd's memory, for the incomplete message of the WebSocket. */
  #reservation: MessageReservation | undefined;
  #isLastRequest = false;
  #requests = 0;
  #receivedAtMs = Date.now();
  /** Since when bytes for the visitor wait for it; undefined while none do. */
  #unreadSinceMs: number | undefined;

  /** @param visitor paused, and created with `allowHalfOpen`. */
  constructor(visitor: Socket, options: VisitorConnectionOptions) {
    this.#visitor = visitor;
    this.#options = options;
    this.#requestObserver = new RequestObserver(options.metrics, options.trace);
    visitor.on("error", () => undefined);
    visitor.on("end", () => this.#handleVisitorEnd());
    visitor.once("close", () => this.#handleVisitorClosed());
    setReceiver(visitor, (bytes) => this.#receive(bytes));
    visitor.resume();
  }

  /** Ends the connection if it takes too long. Called about once a second. */
  checkDeadlines(nowMs: number): void {
    const phase = this.#phase;
    const silentMs = nowMs - this.#receivedAtMs;
    const unreadMaxMs = this.#programMessages ? PROGRAM_UNREAD_MAX_MS : UNREAD_MAX_MS;
    if (this.#unreadSinceMs !== undefined && nowMs - this.#unreadSinceMs > unreadMaxMs) {
      reset(this.#visitor);
    } else if (phase.kind === "head" && this.#requests === 0 && silentMs > FIRST_HEAD_MAX_MS) {
      this.#refuse(TOO_SLOW);
    } else if (phase.kind === "body" && silentMs > BODY_PAUSE_MAX_MS && !this.#hasResponseBegun) {
      this.#refuse(TOO_SLOW);
    } else if (phase.kind === "lingering" && this.isFlushed) {
      if (nowMs > phase.untilMs || silentMs > LINGER_PAUSE_MAX_MS) this.#visitor.destroy();
    }
  }

  /** Whether no response can follow, because workerd has closed its end, and the visitor has everything. */
  get isComplete(): boolean {
    return this.#upstream === undefined && this.isFlushed;
  }

  /** Whether the visitor has everything that was sent to it. */
  get isFlushed(): boolean {
    return this.#visitor.writableLength === 0;
  }

  get kind(): ConnectionKind {
    if (this.#webSocket) return "visitor_websocket";
    return this.#programMessages ? "program" : "http";
  }

  get bytesReceived(): number {
    return this.#visitor.bytesRead;
  }

  /** Without bytes that wait to be sent, so that the number never decreases. */
  get bytesSent(): number {
    return Math.max(0, this.#visitor.bytesWritten - this.#visitor.writableLength);
  }

  // ── From the visitor ──

  #receive(bytes: Uint8Array): boolean {
    this.#receivedAtMs = Date.now();
    let rest = bytes;
    while (rest.length > 0) {
      const { kind } = this.#phase;
      if (kind === "head") rest = this.#receiveHead(rest);
      else if (kind === "body") rest = this.#receiveBody(rest);
      else if (kind === "upgraded") rest = this.#receiveUpgraded(rest);
      else if (kind === "upgrade") {
        this.#heldBytes = rest;
        return false;
      } else return kind === "lingering" || kind === "last";
    }
    return this.#canReceive;
  }

  get #canReceive(): boolean {
    const isForwarded = this.#upstream === undefined || this.#upstream.writableLength === 0;
    return isForwarded && !this.#isStalledProgram;
  }

  /** A program that sends and never reads: workerd answers its heartbeats, and has no bound for the answers. */
  get #isStalledProgram(): boolean {
    if (!this.#programMessages || this.#unreadSinceMs === undefined) return false;
    return Date.now() - this.#unreadSinceMs > PROGRAM_STALLED_MS;
  }

  #receiveHead(bytes: Uint8Array): Uint8Array {
    const found = this.#head.add(bytes);
    if (found === undefined) {
      if (this.#head.isTooLarge) {
        this.#refuse(HEAD_TOO_LARGE);
      }
      return EMPTY;
    }
    const head = parseRequestHead(found.text, this.#options.cfBlobField);
    if (typeof head === "string") {
      this.#refuse(INVALID_HEADS[head]);
      return EMPTY;
    }
    this.#forwardHead(head);
    return found.rest;
  }

  #forwardHead(head: RequestHead): void {
    // The first bytes of a new connection are certainly the answer to this request, and not to an earlier one.
    if (head.isUpgrade && this.#requests > 0) this.#dropUpstream();
    this.#requests += 1;
    const isForApi = head.host !== null && this.#options.apiHosts.has(head.host);
    this.#requestObserver.start(isForApi ? "api" : "tunnel");
    this.#hasResponseBegun = false;
    this.#repeatable = head.canRepeat && !head.isUpgrade ? head.bytes : undefined;
    this.#isLastRequest = head.isLast && !head.isUpgrade;
    if (head.isUpgrade) this.#phase = UPGRADE;
    else if (head.body !== 0) this.#phase = { kind: "body", body: createBodyReader(head.body) };
    this.#forward(head.bytes);
    if (this.#phase === HEAD) this.#endRequest();
  }

  #receiveBody(bytes: Uint8Array): Uint8Array {
    const phase = this.#phase as Extract<Phase, { kind: "body" }>;
    const part = phase.body.read(bytes);
    if (part === undefined) {
      this.#refuse(INVALID_HEADS.malformed);
      return EMPTY;
    }
    for (const piece of part.forward) this.#forward(piece);
    if (phase.body.isComplete) this.#endRequest();
    return bytes.subarray(part.length);
  }

  /** workerd does not read the option `close`. It closes the connection after the answer to the last request. */
  #endRequest(): void {
    this.#phase = this.#isLastRequest ? LAST : HEAD;
    if (this.#isLastRequest) this.#upstream?.end();
  }

  #receiveUpgraded(bytes: Uint8Array): Uint8Array {
    if (this.#webSocket) this.#webSocket.receiveFromVisitor(bytes);
    else if (this.#programMessages?.read(bytes) === false) reset(this.#visitor);
    else this.#forward(bytes);
    return EMPTY;
  }

  /** @returns no bytes: all are taken. */
  #forward(bytes: Uint8Array): Uint8Array {
    this.#upstream ??= this.#connect();
    this.#upstream.write(bytes, this.#handleForwarded);
    return EMPTY;
  }

  readonly #handleForwarded = (): void => {
    if (this.#canReceive && this.#heldBytes === undefined) this.#visitor.resume();
  };

  // ── From workerd ──

  #connect(): Socket {
    const upstream = connectSocket({ path: this.#options.upstreamPath, allowHalfOpen: true });
    readAfterFailedWrites(upstream, Infinity);
    upstream.on("error", () => undefined);
    upstream.once("end", () => this.#handleUpstreamEnded(upstream));
    upstream.once("close", () => this.#handleUpstreamEnded(upstream));
    setReceiver(upstream, (bytes) => this.#receiveResponse(upstream, bytes));
    return upstream.resume();
  }

  #receiveResponse(upstream: Socket, bytes: Uint8Array): boolean {
    if (upstream !== this.#upstream) return false;
    this.#requestObserver.receive(bytes);
    this.#hasResponseBegun = true;
    this.#repeatable = undefined;
    const response = this.#phase === UPGRADE ? this.#readUpgradeResponse(bytes) : bytes;
    if (response === undefined) return true;
    if (this.#webSocket) this.#webSocket.receiveFromServer(response, this.#handleResponseWritten);
    else this.#visitor.write(response, this.#handleResponseWritten);
    const isUnread = this.#visitor.writableLength > 0;
    if (isUnread) this.#unreadSinceMs ??= Date.now();
    return !isUnread;
  }

  readonly #handleResponseWritten = (): void => {
    const isUnread = this.#visitor.writableLength > 0;
    // Some bytes were read, so the visitor is not stalled.
    this.#unreadSinceMs = isUnread ? Date.now() : undefined;
    if (isUnread) return;
    this.#upstream?.resume();
    if (this.#programMessages) this.#handleForwarded();
  };

  /** @returns what to write to the visitor; undefined while the head of the response is incomplete, and stored. */
  #readUpgradeResponse(bytes: Uint8Array): Uint8Array | undefined {
    const known = this.#upgradeResponse
      ? Buffer.concat([this.#upgradeResponse, bytes])
      : toBuffer(bytes);
    const isSwitching = known.toString("latin1", 0, SWITCHING.length) === SWITCHING;
    const headEnd = isSwitching ? known.indexOf(HEAD_END) : -1;
    const isIncomplete = isSwitching && headEnd < 0 && known.length < HEAD_MAX_BYTES;
    if (known.length < SWITCHING.length || isIncomplete) {
      this.#upgradeResponse = Buffer.from(known);
      return undefined;
    }
    this.#upgradeResponse = undefined;
    this.#phase = isSwitching ? UPGRADED : HEAD;
    const held = this.#heldBytes;
    this.#heldBytes = undefined;
    // After this response is written.
    queueMicrotask(() => {
      if (held === undefined || this.#receive(held)) this.#visitor.resume();
    });
    if (headEnd < 0) return known;
    const head = known.toString("latin1", 0, headEnd);
    if (!ACKNOWLEDGED_FIELD.test(head)) {
      this.#reservation = this.#options.createReservation("program");
      this.#programMessages = new ProgramMessages(this.#reservation);
      return known;
    }
    this.#webSocket = this.#createWebSocket();
    this.#visitor.write(head.replace(ACKNOWLEDGED_FIELD, "") + HEAD_END, "latin1");
    return known.subarray(headEnd + HEAD_END.length);
  }

  #createWebSocket(): VisitorWebSocket {
    const visitor = this.#visitor;
    this.#reservation = this.#options.createReservation("visitor");
    return new VisitorWebSocket({
      reservation: this.#reservation,
      acknowledgementKey: this.#options.acknowledgementKey,
      hasUnsentBytes: () => visitor.writableLength > 0,
      writeToVisitor: (bytes, onWritten) => void visitor.write(bytes, onWritten),
      writeToServer: (bytes) => void this.#forward(bytes),
      end: () => {
        this.#dropUpstream();
        this.#endVisitor();
      },
    });
  }

  #handleUpstreamEnded(upstream: Socket): void {
    if (upstream !== this.#upstream) return;
    this.#upstream = undefined;
    upstream.destroy();
    if (this.#phase.kind === "closed") return;
    if (this.#hasResponseBegun) return this.#endVisitor();
    // workerd closes an idle connection after 5 s, which a request can cross. Only a used connection can be idle.
    if (this.#repeatable && this.#requests > 1) {
      const again = this.#repeatable;
      this.#repeatable = undefined;
      this.#forward(again);
      this.#endRequest();
      return;
    }
    this.#refuse(UNAVAILABLE);
  }

  // ── The end ──

  #refuse(refusal: Refusal): void {
    this.#requestObserver.refuse(refusal);
    this.#dropUpstream();
    this.#visitor.write(formatRefusal(refusal));
    this.#endVisitor();
  }

  #endVisitor(): void {
    if (this.#phase.kind === "closed") return;
    this.#head.clear();
    this.#phase = { kind: "lingering", untilMs: Date.now() + LINGER_MAX_MS };
    this.#receivedAtMs = Date.now();
    this.#unreadSinceMs = this.isFlushed ? undefined : Date.now();
    this.#visitor.end(() => (this.#unreadSinceMs = undefined));
    this.#visitor.resume();
  }

  /** The visitor has ended its sending side: it counts as having left, and gets nothing more. */
  #handleVisitorEnd(): void {
    if (this.#phase.kind === "lingering" && !this.isFlushed) return;
    this.#visitor.destroy();
  }

  #handleVisitorClosed(): void {
    this.#phase = CLOSED;
    this.#head.clear();
    this.#requestObserver.leave();
    this.#options.metrics.countClosedConnection(this);
    this.#dropUpstream();
    this.#options.onClose();
  }

  #dropUpstream(): void {
    const upstream = this.#upstream;
    this.#upstream = undefined;
    upstream?.destroy();
    this.#reservation?.clear();
  }
}

const EMPTY = new Uint8Array(0);
