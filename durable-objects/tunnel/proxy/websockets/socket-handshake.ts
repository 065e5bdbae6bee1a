/** The handshake of a visitor's WebSocket, until the local server accepts or refuses it. */
import { ReceiveWindow } from "../../../../protocol/wire/flow-control.ts";
import { FLAG, FRAME, RESET, type Frame } from "../../../../protocol/wire/frames.ts";
import { parseResponseHead } from "../../../../protocol/wire/response-head.ts";
import type { ErrorCode } from "../../../../protocol/errors.ts";
import { MESSAGE_OVERHEAD_BYTES, STREAM_WINDOW_BYTES } from "../../../../protocol/limits.ts";
import type { AgentLink, Stream } from "../../agents/agent-link.ts";
import type { Recording } from "../../captures/recording.ts";
import {
  buildResponseHeaders,
  countHeadBytes,
  countResponseHeadBytes,
  hasNoBody,
  type RequestHead,
} from "../heads.ts";
import type { Usage } from "../../metrics/usage.ts";
import { PacedQueue } from "../pacer.ts";
import type { MemoryHolder, SocketMemory } from "./socket-memory.ts";
import { BoundedBuffer } from "../../../../shared/bounds/bounded-buffer.ts";

/** Longer than an agent waits for its local server, so that the agent's own reason arrives first. */
const HANDSHAKE_MAX_MS = 30_000;
const TOO_MUCH_BUFFERED = "too much is buffered for the tunnel's visitors";

/** The stream that takes over after the handshake. */
type SocketStream = Stream & MemoryHolder;

/**
 * The headers of the local server's 101, or its own response when it refused, or the code of a failure, or `too_large` when the
 * response's head exceeds its limits.
 */
type HandshakeOutcome = { headers: Headers } | Response | ErrorCode | "too_large";

interface HandshakeDeps {
  usage: Usage;
  memory: SocketMemory;
  recording: Recording | null;
  /** Aborted when the visitor disconnects. */
  signal: AbortSignal;
  requestId: string;
}

export class WebSocketHandshake implements Stream, MemoryHolder {
  readonly id: number;
  readonly outcome: Promise<HandshakeOutcome>;
  readonly #link: AgentLink;
  readonly #deps: HandshakeDeps;
  readonly #timer: ReturnType<typeof setTimeout>;
  readonly #settle: (outcome: HandshakeOutcome) => void;
  readonly #window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  readonly #toVisitor: PacedQueue;
  /** The memory that the heads of the request and of the response take. */
  #headBytes: number;
  #refusal: { status: number; headers: Headers; body: BoundedBuffer } | undefined;
  #isAccepted = false;
  /** Messages that the local server sent right after its 101. */
  #early: Frame[] = [];
  #earlyBytes = 0;
  /** The end of the stream, if it came between the 101 and `handOver`. */
  #end: ((stream: SocketStream) => void) | undefined;

  constructor(link: AgentLink, head: RequestHead, deps: HandshakeDeps) {
    const { promise, resolve } = Promise.withResolvers<HandshakeOutcome>();
    this.#link = link;
    this.#deps = deps;
    this.#timer = setTimeout(
      () => this.#cancel("origin_timeout", "no response to the handshake"),
      HANDSHAKE_MAX_MS,
    );
    const abandon = () => this.#cancel("origin_failed", "the visitor has disconnected");
    this.#settle = (outcome) => {
      clearTimeout(this.#timer);
      deps.signal.removeEventListener("abort", abandon);
      this.#toVisitor.clear();
      deps.memory.record(this, 0);
      resolve(outcome);
    };
    this.outcome = promise;
    this.#toVisitor = new PacedQueue(link.pace.toVisitors);
    this.id = link.open(this);
    link.sendRequest(this.id, head, deps.requestId);
    deps.signal.addEventListener("abort", abandon);
    this.#headBytes = countHeadBytes(head);
    deps.memory.record(this, this.#headBytes);
  }

  /** From now on the stream belongs to the visitor's WebSocket. */
  handOver(stream: SocketStream): void {
    this.#deps.memory.record(this, 0);
    if (!this.#end) this.#link.resume(this.id, stream);
    for (const frame of this.#early) stream.onFrame(frame);
    this.#end?.(stream);
  }

  onFrame(frame: Frame): boolean {
    if (frame.type === FRAME.response) return this.#receiveHead(frame);
    if (frame.type === FRAME.data) return this.#receiveBody(frame);
    if (!this.#isAccepted) return false;
    if (this.#end) return true;
    const { byteLength } = frame.payload;
    this.#early.push({ ...frame, payload: frame.payload.slice() });
    this.#earlyBytes += byteLength + MESSAGE_OVERHEAD_BYTES;
    this.#deps.memory.record(this, this.#earlyBytes);
    return this.#window.recordReceived(byteLength);
  }

  onReset(code: number, reason: string): void {
    this.#end = (stream) => stream.onReset(code, reason);
    if (code === RESET.originUnreachable) this.#settle("origin_unreachable");
    else if (code === RESET.originTimeout) this.#settle("origin_timeout");
    else if (code === RESET.refused) this.#settle("agent_offline");
    else this.#settle("origin_failed");
  }

  onConnectionLost(): void {
    this.#end = (stream) => stream.onConnectionLost();
    this.#settle("agent_offline");
  }

  endForMemory(): void {
    if (!this.#isAccepted) return this.#cancel("origin_failed", TOO_MUCH_BUFFERED);
    this.#early = [];
    this.#earlyBytes = 0;
    this.#deps.memory.record(this, 0);
    this.#end = (stream) => stream.endForMemory();
  }

  #cancel(code: ErrorCode, reason: string): void {
    this.#link.reset(this.id, RESET.canceled, reason);
    this.#settle(code);
  }

  #receiveHead(frame: Frame): boolean {
    const head = parseResponseHead(frame.payload);
    if (!head || this.#refusal || this.#isAccepted) return false;
    if (head === "too_large") {
      this.#link.reset(this.id, RESET.tooLarge, "the response's head is too large");
      this.#settle(head);
      return true;
    }
    this.#headBytes += countResponseHeadBytes(frame.payload, head.pairs);
    this.#tryHttp(() => {
      const headers = new Headers(buildResponseHeaders(head.pairs, this.#deps.requestId));
      this.#deps.recording?.startResponse(head.status, head.pairs, frame.payload.byteLength);
      this.#isAccepted = head.status === 101;
      if (this.#isAccepted) this.#settle({ headers });
      else {
        const body = new BoundedBuffer(STREAM_WINDOW_BYTES);
        this.#refusal = { status: head.status, headers, body };
        this.#deps.memory.record(this, this.#headBytes);
      }
    });
    if (this.#refusal && frame.flags & FLAG.end) this.#respondWithRefusal();
    return true;
  }

  /** A refusal is held in memory as a whole, so it may not exceed the window. */
  #receiveBody(frame: Frame): boolean {
    if (!this.#refusal || !this.#window.recordReceived(frame.payload.byteLength)) return false;
    const { body } = this.#refusal;
    body.append(frame.payload);
    this.#deps.usage.countOut(frame.payload.byteLength);
    this.#deps.recording?.addResponseBytes(frame.payload);
    // This may end the handshake.
    this.#deps.memory.record(this, this.#headBytes + body.bytes.byteLength);
    if (frame.flags & FLAG.end) this.#respondWithRefusal();
    return true;
  }

  /** The response waits until the rate of the agents' token allows its body. */
  #respondWithRefusal(): void {
    const { status, headers, body } = this.#refusal!;
    clearTimeout(this.#timer);
    headers.delete("content-length");
    this.#window.end();
    const grant = this.#window.recordConsumed(body.bytes.byteLength);
    if (grant > 0) this.#link.send((writer) => writer.writeCredit(this.id, grant));
    const whole = hasNoBody(status) ? null : body.bytes;
    this.#tryHttp(() => {
      const response = new Response(whole, { status, headers, encodeBody: "manual" });
      this.#link.finish(this.id);
      this.#toVisitor.push(body.bytes.byteLength, () => {
        this.#deps.recording?.complete();
        this.#settle(response);
      });
    });
  }

  /** A status or a header that HTTP does not allow throws. */
  #tryHttp(act: () => void): void {
    try {
      act();
    } catch {
      this.#link.reset(this.id, RESET.protocolError, "invalid HTTP response");
      this.#settle("origin_failed");
    }
  }
}
