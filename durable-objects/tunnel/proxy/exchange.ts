/** One visitor's HTTP request, forwarded to an agent, and the response on its way back. */
import { ReceiveWindow } from "../../../protocol/wire/flow-control.ts";
import {
  FLAG,
  FRAME,
  RESET,
  parseResponseHead,
  type Frame,
} from "../../../protocol/wire/frames.ts";
import type { ErrorCode } from "../../../protocol/errors.ts";
import { STREAM_WINDOW_BYTES } from "../../../protocol/limits.ts";
import type { AgentLink, Stream } from "../agents/agent-link.ts";
import type { Recording } from "../captures/recording.ts";
import { parseContentLength, hasNoBody, buildResponseHeaders, type RequestHead } from "./heads.ts";
import { PacedQueue } from "./pacer.ts";
import { ResponseBody, type TruncationSignal } from "./response-body.ts";
import { sendBody, type Upload } from "./request-body.ts";
import type { Usage } from "../metrics/usage.ts";
import { concatBytes } from "../../../shared/bytes.ts";

/**
 * The outcome of an exchange: a response, the code of a failure, `refused` when the agent did not take the
 * request, or `lost` when it disconnected before it responded. A request that was refused, or that may be
 * repeated, can then go to the next agent.
 */
export type ExchangeOutcome = Response | ErrorCode | "lost" | "refused";

/** The parts of a request that are needed to forward it. */
export type ForwardableRequest = Pick<Request, "method" | "body" | "bodyUsed" | "signal">;

export interface ExchangeDeps {
  usage: Usage;
  onCloudflare: boolean;
  /** Called once, when an exchange will send and receive nothing more. */
  onDone(): void;
}

/** RFC 9110 §9.2.2. */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

/** How far the response has come. */
type Phase = Waiting | Held | Streaming | Discarding | Done;

/** The agent has not responded. */
interface Waiting {
  kind: "waiting";
}

/** The agent's head has arrived. The visitor gets the response when the pacer allows it. */
interface Held {
  kind: "held";
  status: number;
  pairs: string[];
  /** The body so far. */
  chunks: Uint8Array[];
  bytes: number;
  /** Whether more of the body will arrive. */
  end: "open" | End;
}

/** The visitor has the head, and gets the body as it arrives. */
interface Streaming {
  kind: "streaming";
  body: ResponseBody;
}

/** The visitor has a response without a body. If the agent sends one, it is dropped. */
interface Discarding {
  kind: "discarding";
}

/** The exchange is settled, and nothing more is sent or received. */
interface Done {
  kind: "done";
  end: End;
}

/** Whether the agent sent the whole response. */
type End = "complete" | "cut";

const WAITING: Waiting = { kind: "waiting" };
const DISCARDING: Discarding = { kind: "discarding" };
const DONE: Record<End, Done> = {
  complete: { kind: "done", end: "complete" },
  cut: { kind: "done", end: "cut" },
};

export class Exchange implements Stream {
  readonly #link: AgentLink;
  readonly #deps: ExchangeDeps;
  readonly #head: RequestHead;
  readonly #id: number;
  readonly #window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  readonly #queue: PacedQueue;
  readonly #recording: Recording | null;
  readonly #settle: (outcome: ExchangeOutcome) => void;
  #upload: Upload | undefined;
  #phase: Phase = WAITING;

  /** @param settle called once with the outcome. */
  constructor(
    link: AgentLink,
    request: ForwardableRequest,
    head: RequestHead,
    deps: ExchangeDeps,
    recording: Recording | null,
    settle: (outcome: ExchangeOutcome) => void,
  ) {
    this.#link = link;
    this.#deps = deps;
    this.#head = head;
    this.#recording = recording;
    this.#settle = settle;
    this.#queue = new PacedQueue(link.pace.toVisitors);
    this.#id = link.open(this);
    link.send((writer) => writer.writeJson(FRAME.request, head.flags, this.#id, head.parts));
    if (request.body !== null)
      this.#upload = sendBody(request.body, link, this.#id, deps.usage, recording);
    request.signal.addEventListener("abort", () => this.#cancel(), { once: true });
  }

  /** Whether sending the same request again has no effect beyond that of sending it once. */
  static canRepeat(request: ForwardableRequest): boolean {
    return request.body === null && IDEMPOTENT.has(request.method);
  }

  // ── Called by the link ──

  onFrame(frame: Frame): boolean {
    if (frame.type === FRAME.response && this.#phase.kind === "waiting") {
      return this.#receiveHead(frame);
    }
    if (frame.type === FRAME.data && this.#phase.kind !== "waiting") {
      return this.#receiveData(frame);
    }
    return false;
  }

  onReset(code: number): void {
    this.#upload?.cancel();
    if (this.#phase.kind !== "waiting") return this.#cut(toErrorCode(code));
    this.#finish("cut");
    this.#settle(code === RESET.refused ? "refused" : toErrorCode(code));
  }

  onConnectionLost(): void {
    this.#upload?.cancel();
    if (this.#phase.kind !== "waiting") return this.#cut("agent_offline");
    this.#finish("cut");
    this.#settle("lost");
  }

  // ── Inside: from the agent ──

  #receiveHead(frame: Frame): boolean {
    const head = parseResponseHead(frame.payload);
    if (!head) return false;
    const { status, pairs } = head;
    const held: Held = { kind: "held", status, pairs, chunks: [], bytes: 0, end: "open" };
    this.#phase = held;
    this.#recording?.startResponse(status, pairs);
    if (frame.flags & FLAG.end) this.#endResponse();
    // After the whole message is read: a body that came in the same message needs no stream.
    this.#link.afterMessage(() => {
      this.#queue.push(held.end === "complete" ? held.bytes : 0, () => this.#respond(held));
    });
    return true;
  }

  #receiveData(frame: Frame): boolean {
    const { payload } = frame;
    if (!this.#window.recordReceived(payload.byteLength)) return false;
    this.#deps.usage.countOut(payload.byteLength);
    this.#recording?.addResponseBytes(payload);
    if (payload.byteLength > 0) this.#takeChunk(payload);
    if (frame.flags & FLAG.end) this.#endResponse();
    return true;
  }

  #takeChunk(chunk: Uint8Array): void {
    const phase = this.#phase;
    if (phase.kind === "streaming") phase.body.write(chunk);
    else if (phase.kind === "held") {
      phase.chunks.push(chunk);
      phase.bytes += chunk.byteLength;
    } else this.#grant(chunk.byteLength);
  }

  #endResponse(): void {
    const phase = this.#phase;
    this.#window.end();
    this.#finish("complete");
    if (phase.kind === "streaming") phase.body.end();
    if (phase.kind !== "held") this.#recording?.complete();
    if (!this.#upload || this.#upload.isFinished()) return this.#link.finish(this.#id);
    // The response is complete before the request is: the agent will not read the rest of it.
    this.#upload.cancel();
    this.#link.reset(this.#id, RESET.cancelled, "the response ended before the request body");
  }

  /** The agent will not send the rest of its response. */
  #cut(code: ErrorCode): void {
    const phase = this.#phase;
    this.#finish("cut");
    this.#recording?.fail(code);
    if (phase.kind === "streaming") phase.body.truncate();
  }

  // ── Inside: to the visitor ──

  #respond(held: Held): void {
    const outcome = this.#buildResponse(held);
    // A body that streams is recorded as complete when it ends.
    if (outcome instanceof Response && this.#phase.kind !== "streaming") {
      this.#recording?.complete();
    }
    this.#settle(outcome);
  }

  /** Leaves the phase `held`. */
  #buildResponse(held: Held): ExchangeOutcome {
    const { status, pairs, chunks, end } = held;
    try {
      const headers = buildResponseHeaders(pairs);
      const init = { status, headers, encodeBody: "manual" as const };
      if (this.#head.isHeadMethod || hasNoBody(status)) {
        this.#phase = end === "open" ? DISCARDING : DONE[end];
        this.#grantHeld(held);
        return new Response(null, init);
      }
      const length = parseContentLength(headers);
      if (end === "complete") return this.#buildWholeResponse(held, length, init);
      if (end === "cut") {
        this.#phase = DONE.cut;
        return "origin_failed";
      }
      const body = this.#createBody(headers, length);
      this.#phase = { kind: "streaming", body };
      for (const chunk of chunks) body.write(chunk);
      held.chunks = [];
      held.bytes = 0;
      return new Response(body.readable, init);
    } catch {
      // A status or a header that HTTP does not allow.
      this.#grantHeld(held);
      this.#finish("cut");
      this.#phase = DONE.cut;
      this.#link.reset(this.#id, RESET.protocolError, "invalid HTTP response");
      return "origin_failed";
    }
  }

  #buildWholeResponse(held: Held, length: number | null, init: ResponseInit): ExchangeOutcome {
    const { chunks } = held;
    const body = chunks.length === 1 ? chunks[0]! : concatBytes(chunks);
    this.#phase = DONE.complete;
    this.#grantHeld(held);
    return length === null || body.byteLength === length
      ? new Response(body, init)
      : "origin_failed";
  }

  #createBody(headers: Headers, length: number | null): ResponseBody {
    const isTruncationVisible = length !== null || this.#deps.onCloudflare;
    return new ResponseBody(
      length,
      this.#queue,
      getTruncationSignal(headers, isTruncationVisible),
      (bytes) => this.#grant(bytes),
      (bytes) => this.#discard(bytes),
    );
  }

  #grantHeld(held: Held): void {
    this.#grant(held.bytes);
    held.chunks = [];
    held.bytes = 0;
  }

  /** The visitor disconnected and takes no more bytes. Those of a complete response still need credit. */
  #discard(bytes: number): void {
    if (this.#phase === DONE.complete) this.#grant(bytes);
    else this.#cancel();
  }

  #grant(bytes: number): void {
    const grant = this.#window.recordConsumed(bytes);
    if (grant > 0) this.#link.send((writer) => writer.writeCredit(this.#id, grant));
  }

  // ── Inside: the end ──

  /** The visitor disconnected. */
  #cancel(): void {
    const { kind } = this.#phase;
    if (!this.#isOpen) return;
    this.#finish("cut");
    this.#recording?.abort();
    this.#queue.clear();
    this.#upload?.cancel();
    this.#link.reset(this.#id, RESET.cancelled, "the visitor left");
    if (kind === "waiting" || kind === "held") this.#settle("agent_offline");
  }

  get #isOpen(): boolean {
    const phase = this.#phase;
    return phase.kind === "held" ? phase.end === "open" : phase.kind !== "done";
  }

  /** Nothing more is sent or received. A response that is held still goes to the visitor. */
  #finish(end: End): void {
    if (!this.#isOpen) return;
    if (this.#phase.kind === "held") this.#phase.end = end;
    else this.#phase = DONE[end];
    this.#deps.onDone();
  }
}

function toErrorCode(code: number): ErrorCode {
  switch (code) {
    case RESET.originUnreachable:
      return "origin_unreachable";
    case RESET.originTimeout:
      return "origin_timeout";
    default:
      return "origin_failed";
  }
}

/**
 * How to end a truncated body so that no visitor takes it for a complete one. With a `Content-Length`, or behind
 * the hosted edge, visitors notice that bytes are missing. Without either, workerd ends an aborted body with the
 * chunk that means "complete": so the connection stays open until the visitor closes it. Server-sent events are
 * ended, because their readers reconnect after any end.
 */
function getTruncationSignal(headers: Headers, isTruncationVisible: boolean): TruncationSignal {
  if (isTruncationVisible) return "abort";
  return headers.get("content-type")?.startsWith("text/event-stream") ? "end" : "silence";
}
