/**
 * One connection of a visitor, and its own connection to workerd, which is made when the first request is complete. So
 * a visitor who sends nothing, or sends slowly, costs workerd nothing. When the visitor leaves, the connection to workerd
 * is closed completely, which ends the visitor's requests there at once.
 */
import type { Socket } from "node:net";
import { EMPTY } from "./http1/buffers.ts";
import { CLOSED, HEAD, LAST, QUEUED, RESPONSE, UPGRADED, type Phase } from "./connection-phase.ts";
import { HeldBytes } from "./held-bytes.ts";
import { HeadBuffer } from "./http1/head-buffer.ts";
import {
  BODY_PAUSE_MAX_MS,
  DISCARDED_BODY_MAX_BYTES,
  FIRST_HEAD_MAX_MS,
  HELD_MAX_MS,
  LINGER_MAX_MS,
  LINGER_PAUSE_MAX_MS,
  PROGRAM_UNREAD_MAX_MS,
  QUEUED_MAX_MS,
  UNREAD_MAX_MS,
  UPSTREAM_IDLE_MAX_MS,
} from "./limits.ts";
import type { Destination } from "./metrics/front-proxy-metrics.ts";
import { OpenConnection } from "./metrics/open-connection.ts";
import { RequestObserver } from "./metrics/request-observer.ts";
import type { QueuedItem } from "./queue/fair-queue.ts";
import { CONTINUE, RequestBody } from "./http1/request-body.ts";
import { parseRequestHead, type RequestHead } from "./http1/request-head.ts";
import { ResponseReader, SWITCHING_PROTOCOLS, type ResponseHead } from "./http1/response-reader.ts";
import {
  formatRefusal,
  HEAD_TOO_LARGE,
  INVALID_HEADS,
  NO_ANSWER,
  OVERLOADED,
  TOO_SLOW,
  UNAVAILABLE,
  type Refusal,
} from "./refusals.ts";
import { acceptWebSocket } from "./websockets/accepted-web-socket.ts";
import { hasStalled, type OpenWebSocket } from "./websockets/open-web-socket.ts";
import { joinRelay } from "./relay/agent-connection.ts";
import { findDestination, UpstreamConnection } from "./upstream.ts";
import type { Visitor, VisitorConnectionOptions } from "./visitor-connection-options.ts";
import { reset } from "../../sockets/splice.ts";
import { setReceiver } from "../../sockets/socket-reader.ts";

export class VisitorConnection {
  readonly metrics: OpenConnection;
  readonly #visitor: Visitor;
  readonly #options: VisitorConnectionOptions;
  readonly #head = new HeadBuffer();
  readonly #requestObserver: RequestObserver;
  readonly #response = new ResponseReader();
  readonly #upstream: UpstreamConnection;
  #phase: Phase = HEAD;
  readonly #held = new HeldBytes(() => this.#continue());
  /** The last request, until its response begins. */
  #queued: QueuedItem | undefined;
  /** The last request, until its response begins, if it may be sent again. */
  #repeatable: RequestHead | undefined;
  /** Whether the last request is a HEAD request, whose response has no body. */
  #isHeadRequest = false;
  /** Whether the final response to the last request has begun; true before the first one. */
  #hasResponseBegun = true;
  #webSocket: OpenWebSocket | undefined;
  #isUpgrade = false;
  #isLastRequest = false;
  /** Whether workerd may close the connection after it has answered the last request. */
  #hasLargeBody = false;
  #requests = 0;
  /** When bytes arrived last, from either side. */
  #activeAtMs = performance.now();
  #idleSinceMs = performance.now();
  /** When bytes began to wait for the visitor; undefined while none do. */
  #unreadSinceMs: number | undefined;

  /** @param visitor paused, and created with `allowHalfOpen`. */
  constructor(visitor: Visitor, options: VisitorConnectionOptions) {
    this.#visitor = visitor;
    this.#options = options;
    this.metrics = new OpenConnection(visitor);
    this.#requestObserver = new RequestObserver(options.metrics, options.trace);
    this.#upstream = new UpstreamConnection(options, {
      onReceive: (bytes) => this.#receiveResponse(bytes),
      onWritten: this.#continue,
      onEnd: () => this.#handleUpstreamEnded(),
    });
    visitor.on("error", () => undefined);
    visitor.on("end", () => this.#handleVisitorEnd());
    visitor.once("close", () => this.#handleVisitorClosed());
    setReceiver(visitor, (bytes) => this.#receive(bytes));
    visitor.resume();
  }

  /** Ends the connection if it takes too long. Called about once a second. @param nowMs of `performance.now()`: a clock that is never set. */
  checkDeadlines(nowMs: number): void {
    const phase = this.#phase;
    if (phase.kind === "joined") return;
    const silentMs = nowMs - this.#activeAtMs;
    const unreadMaxMs = this.metrics.kind === "program" ? PROGRAM_UNREAD_MAX_MS : UNREAD_MAX_MS;
    if (this.#unreadSinceMs !== undefined && nowMs - this.#unreadSinceMs > unreadMaxMs) {
      reset(this.#visitor);
    } else if (phase.kind === "head") {
      const idleMs = nowMs - this.#idleSinceMs;
      if (idleMs > UPSTREAM_IDLE_MAX_MS) this.#upstream.close();
      if (this.#requests > 0 && idleMs > this.#options.idleMaxMs) this.#end();
      else if (this.#requests === 0 && idleMs > FIRST_HEAD_MAX_MS) this.#refuse(TOO_SLOW);
    } else if (phase.kind === "queued" && silentMs > QUEUED_MAX_MS) {
      this.#refuse(NO_ANSWER);
    } else if (phase.kind === "body" && silentMs > BODY_PAUSE_MAX_MS && !this.#hasResponseBegun) {
      this.#refuse(TOO_SLOW);
    } else if (phase.kind === "response" && this.#held.bytes && silentMs > HELD_MAX_MS) {
      reset(this.#visitor);
    } else if (phase.kind === "body" && !this.#upstream.isFlushed && silentMs > HELD_MAX_MS) {
      reset(this.#visitor);
    } else if ("untilMs" in phase && this.isFlushed) {
      if (nowMs > phase.untilMs || silentMs > LINGER_PAUSE_MAX_MS) this.#visitor.destroy();
    }
  }

  /** Whether no response can follow, because workerd has closed its end, and the visitor has everything. */
  get isComplete(): boolean {
    return !this.#upstream.isOpen && this.isFlushed;
  }

  get isFlushed(): boolean {
    return this.#visitor.writableLength === 0;
  }

  /** Ends a response that can't be completed: the visitor gets what has arrived, and notices that the rest is missing. */
  cutResponse(): void {
    if (this.#hasResponseBegun && !this.#response.isComplete) this.#end();
  }

  // ── From the visitor ──

  #receive(bytes: Uint8Array): boolean {
    this.#activeAtMs = performance.now();
    let rest = bytes;
    while (rest.length > 0) {
      const { kind } = this.#phase;
      if (kind === "head") rest = this.#receiveHead(rest);
      else if (kind === "body") {
        rest = this.#receiveBody(rest);
        if (rest.length > 0 && this.#phase.kind === "body") return this.#held.yield(rest);
      } else if (kind === "upgraded") {
        rest = rest.subarray(this.#webSocket!.receiveFromVisitor(rest));
        if (rest.length > 0) return this.#held.hold(rest);
      } else if (kind === "queued" || kind === "response") return this.#held.hold(rest);
      else return kind === "lingering" || kind === "last";
    }
    return this.#canReceive;
  }

  /** Goes on with the bytes that had to wait, and with reading, unless there is something to wait for. */
  readonly #continue = (): void => {
    if (!this.#canReceive) return;
    const held = this.#held.take();
    if (held === undefined || this.#receive(held)) this.#visitor.resume();
  };

  get #canReceive(): boolean {
    if (this.#phase.kind === "joined") return false;
    if (this.#held.isYielding || this.#webSocket?.limits.allowance.isUsedUp) return false;
    const isStalled = this.#webSocket && hasStalled(this.#webSocket, this.#unreadSinceMs);
    return this.#upstream.isFlushed && !isStalled;
  }

  #receiveHead(bytes: Uint8Array): Uint8Array {
    const found = this.#head.add(bytes);
    if (found === undefined) {
      if (this.#head.isTooLarge) this.#refuse(HEAD_TOO_LARGE);
      return EMPTY;
    }
    this.#isHeadRequest = found.text.startsWith("HEAD ");
    const head = parseRequestHead(found.text, this.#options.cfBlobField);
    if (typeof head === "string") {
      this.#refuse(INVALID_HEADS[head]);
      return EMPTY;
    }
    this.#enqueue(head);
    return found.rest;
  }

  #enqueue(head: RequestHead): void {
    const options = this.#options;
    const destination = findDestination(head, options);
    this.#requestObserver.start(destination);
    this.#phase = QUEUED;
    this.#queued = undefined;
    // Nothing of workerd is needed for it.
    if (destination === "relay") return this.#forwardHead(head, destination);
    this.#queued = options.queue.add({
      bytes: head.bytes.length,
      findSource: () => options.findSource(head),
      send: () => this.#forwardHead(head, destination),
    });
    if (this.#queued === undefined) this.#refuse(OVERLOADED);
  }

  #forwardHead(head: RequestHead, destination: Destination): void {
    // The first bytes of a new connection are certainly the answer to this request, and not to an earlier one.
    if (head.isUpgrade) this.#upstream.close();
    this.#upstream.select(destination);
    this.#requests += 1;
    this.#isUpgrade = head.isUpgrade;
    this.#isLastRequest = head.isLast && !head.isUpgrade;
    this.#hasLargeBody = head.body === "chunked" || head.body > DISCARDED_BODY_MAX_BYTES;
    this.#sendHead(head);
    if (head.body === 0) this.#endRequest();
    else this.#phase = { kind: "body", body: new RequestBody(head, this.#inviteBody) };
    // If the request had to wait, the bytes after it had to wait too.
    if (this.#queued) this.#continue();
  }

  #sendHead(head: RequestHead): void {
    this.#hasResponseBegun = false;
    this.#repeatable = head.canRepeat && !head.isUpgrade ? head : undefined;
    this.#response.expect(head.method);
    this.#upstream.forward([head.bytes]);
  }

  /** The visitor may wait for it before it sends a body (RFC 9110 §10.1.1). */
  readonly #inviteBody = (): void => {
    if (!this.#hasResponseBegun && !this.#visitor.writableEnded) this.#visitor.write(CONTINUE);
  };

  #receiveBody(bytes: Uint8Array): Uint8Array {
    const phase = this.#phase as Extract<Phase, { kind: "body" }>;
    const part = phase.body.read(bytes);
    if (part === undefined) {
      if (this.#hasResponseBegun) this.#end();
      else this.#refuse(INVALID_HEADS.malformed);
      return EMPTY;
    }
    if (!("untilMs" in phase)) this.#upstream.forward(part.forward);
    if (phase.body.isComplete) this.#endRequest();
    return bytes.subarray(part.length);
  }

  /** workerd does not read the option `close`. It closes the connection after the answer to the last request. */
  #endRequest(): void {
    if (this.#isLastRequest) {
      this.#phase = LAST;
      this.#upstream.end();
    } else if (this.#response.isComplete) this.#awaitRequest();
    else this.#phase = RESPONSE;
  }

  #awaitRequest(): void {
    if (this.#hasLargeBody) this.#upstream.release();
    this.#phase = HEAD;
    this.#isHeadRequest = false;
    this.#idleSinceMs = performance.now();
  }

  // ── From workerd ──

  #receiveResponse(bytes: Uint8Array): boolean {
    this.#activeAtMs = performance.now();
    if (this.#webSocket) this.#webSocket.receiveFromServer(bytes, this.#handleResponseWritten);
    else this.#passResponse(bytes);
    const isUnread = this.#visitor.writableLength > 0;
    if (isUnread) this.#unreadSinceMs ??= performance.now();
    return !isUnread;
  }

  readonly #handleResponseWritten = (): void => {
    const isUnread = this.#visitor.writableLength > 0;
    // Some bytes were read, so the visitor is not stalled.
    this.#unreadSinceMs = isUnread ? performance.now() : undefined;
    if (isUnread) return;
    this.#upstream.resume();
    if (this.#webSocket) this.#continue();
  };

  #passResponse(bytes: Uint8Array): void {
    const part = this.#response.read(bytes);
    if (part === undefined) return;
    this.#repeatable = undefined;
    if (part.head) {
      this.#hasResponseBegun = true;
      this.#queued?.end();
      this.#requestObserver.respond(part.head);
    }
    const isSwitching = this.#isUpgrade && part.head?.status === SWITCHING_PROTOCOLS;
    if (isSwitching && this.#upstream.destination === "relay")
      this.#joinRelay(part.head!, part.bytes);
    else if (isSwitching) this.#openWebSocket(part.head!, part.bytes);
    else this.#visitor.write(part.bytes, this.#handleResponseWritten);
    if (this.#phase !== RESPONSE || !this.#response.isComplete) return;
    this.#awaitRequest();
    this.#continue();
  }

  /** @param bytes the response, and what workerd has sent after it. */
  #openWebSocket({ text, end }: ResponseHead, bytes: Uint8Array): void {
    const webSocket = (this.#webSocket = acceptWebSocket(text, {
      visitor: this.#visitor,
      acknowledgementKey: this.#options.connectionKey,
      createLimits: (kind) => this.#options.createWebSocketLimits(kind, this.#continue),
      writeToServer: (pieces) => this.#upstream.forward(pieces),
      end: () => this.#end(),
    }));
    this.#phase = UPGRADED;
    this.metrics.kind = webSocket.kind === "visitor" ? "visitor_websocket" : "program";
    webSocket.receiveFromServer(bytes.subarray(end), this.#handleResponseWritten);
    this.#continue();
  }

  /** @param bytes the response, and what the relay has sent after it. */
  #joinRelay({ text }: ResponseHead, bytes: Uint8Array): void {
    const relay = this.#upstream.detach();
    this.#phase = { kind: "joined" };
    this.metrics.kind = "program";
    // HTTP/2 has no upgrades.
    const ends = { agent: this.#visitor as Socket, relay, unread: this.#held.bytes };
    joinRelay({ ...ends, head: text, bytes, onWebSocketEnd: () => this.#endVisitor() });
  }

  #handleUpstreamEnded(): void {
    if (this.#phase === CLOSED || this.#phase === QUEUED) return;
    if (this.#hasResponseBegun) {
      if (this.#phase.kind !== "body" || !this.#mayRequestFollow) return this.#endVisitor();
      this.#phase = { ...this.#phase, untilMs: performance.now() + LINGER_MAX_MS };
      return this.#continue();
    }
    // workerd was restarted. Only a used connection can have been idle.
    if (this.#repeatable && this.#requests > 1) {
      this.#sendHead(this.#repeatable);
      // Only once, because workerd may be down.
      this.#repeatable = undefined;
      this.#endRequest();
      return;
    }
    this.#refuse(UNAVAILABLE);
  }

  /** Whether the visitor, who has the whole response and still sends the body, may send another request after it. */
  get #mayRequestFollow(): boolean {
    return this.#response.isComplete && !this.#isLastRequest && !this.#visitor.canStopRequests;
  }

  // ── The end ──

  #refuse(refusal: Refusal): void {
    this.#requestObserver.refuse(refusal);
    this.#dropUpstream();
    this.#visitor.write(formatRefusal(refusal, this.#isHeadRequest));
    this.#endVisitor();
  }

  #end(): void {
    this.#dropUpstream();
    this.#endVisitor();
  }

  #endVisitor(): void {
    if (this.#phase.kind === "closed") return;
    this.#head.clear();
    this.#phase = { kind: "lingering", untilMs: performance.now() + LINGER_MAX_MS };
    this.#activeAtMs = performance.now();
    this.#unreadSinceMs = this.isFlushed ? undefined : performance.now();
    this.#visitor.end(() => (this.#unreadSinceMs = undefined));
    this.#visitor.resume();
  }

  /** The visitor has sent a FIN: it counts as having left, even if it ends only its sending side, and gets nothing more. */
  #handleVisitorEnd(): void {
    const { kind } = this.#phase;
    if (kind === "joined" || (kind === "lingering" && !this.isFlushed)) return;
    this.#visitor.destroy();
  }

  #handleVisitorClosed(): void {
    this.#phase = CLOSED;
    this.#head.clear();
    this.#requestObserver.leave();
    this.#dropUpstream();
    this.#options.onClose();
  }

  #dropUpstream(): void {
    this.#queued?.end();
    this.#upstream.close();
    this.#webSocket?.limits.reservation.clear();
    this.#webSocket?.limits.allowance.end();
  }
}
