/** One visitor's HTTP request, forwarded to an agent, and the response on its way back. */
import { ReceiveWindow } from "../../../protocol/wire/flow-control.ts";
import { FLAG, FRAME, RESET, type Frame, type ResetCode } from "../../../protocol/wire/frames.ts";
import { parseResponseHead } from "../../../protocol/wire/response-head.ts";
import type { ErrorCode } from "../../../protocol/errors.ts";
import { getConnectionKey } from "../../../protocol/front-proxy/connection-key.ts";
import { STREAM_WINDOW_BYTES } from "../../../protocol/limits.ts";
import type { AgentLink, Stream } from "../agents/agent-link.ts";
import { compactView } from "../buffered-bytes.ts";
import type { Recording } from "../captures/recording.ts";
import {
  countResponseHeadBytes,
  parseContentLength,
  hasNoBody,
  buildResponseHeaders,
  type RequestHead,
  type ResponseHeaders,
} from "./heads.ts";
import {
  DONE,
  isWhole,
  WAITING,
  type End,
  type HeldResponse,
  type Phase,
} from "./exchange-phase.ts";
import type { DepartedVisitors, WatchedResponse } from "./departed-visitors.ts";
import type { InFlightPlace } from "./in-flight.ts";
import { PacedQueue } from "./pacer.ts";
import { getTruncationSignal, ResponseBody } from "./response-body.ts";
import { sendBody, type Upload } from "./request-body.ts";
import { markSilentTruncation } from "./silent-truncation.ts";
import type { Usage } from "../metrics/usage.ts";
import { concatBytes } from "../../../shared/bytes.ts";

/**
 * The outcome of an exchange: a response, the code of a failure, `too_large` when the response's head exceeds its limits,
 * `refused` when the agent did not take the request, or `lost` when it disconnected before it responded. A request that was
 * refused, or that may be repeated, can then go to the next agent.
 */
export type ExchangeOutcome = Response | ErrorCode | "too_large" | "lost" | "refused";

/** The parts of a request that are needed to forward it. */
type ForwardableRequest = Pick<Request, "method" | "body" | "bodyUsed" | "signal"> & {
  /** From the platform. */
  cf?: unknown;
};

/** A visitor's request with what accompanies it to the agent. */
export interface ForwardableVisit {
  request: ForwardableRequest;
  requestId: string;
  head: RequestHead;
  recording: Recording | null;
  place: InFlightPlace;
}

export interface ExchangeDeps {
  usage: Usage;
  onCloudflare: boolean;
  /** Self-hosted. */
  departed?: DepartedVisitors | undefined;
  /** Called once, when an exchange will send and receive nothing more. */
  onDone(): void;
}

const SLOW_VISITORS = "too many bytes wait for slow visitors";
/** How much is dropped of a body where none belongs. No rate limits these bytes. */
const DROPPED_MAX_BYTES = STREAM_WINDOW_BYTES;

/** RFC 9110 §9.2.2. */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

export class Exchange implements Stream {
  readonly #link: AgentLink;
  readonly #deps: ExchangeDeps;
  readonly #head: RequestHead;
  readonly #requestId: string;
  readonly #id: number;
  readonly #window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  readonly #queue: PacedQueue;
  readonly #recording: Recording | null;
  readonly #place: InFlightPlace;
  readonly #settle: (outcome: ExchangeOutcome) => void;
  readonly #request: ForwardableRequest;
  #upload: Upload | undefined;
  #watched: WatchedResponse | undefined;
  #phase: Phase = WAITING;

  /** @param settle called once with the outcome. After a response, the exchange itself frees the visit's place. */
  constructor(
    link: AgentLink,
    visit: ForwardableVisit,
    deps: ExchangeDeps,
    settle: (outcome: ExchangeOutcome) => void,
  ) {
    const { request, requestId, head, recording, place } = visit;
    this.#link = link;
    this.#deps = deps;
    this.#request = request;
    this.#head = head;
    this.#requestId = requestId;
    this.#recording = recording;
    this.#place = place;
    this.#settle = settle;
    this.#queue = new PacedQueue(link.pace.toVisitors);
    this.#id = link.open(this);
    link.sendRequest(this.#id, head, requestId);
    if (request.body !== null) {
      this.#upload = sendBody(request.body, {
        link,
        stream: this.#id,
        usage: deps.usage,
        recording,
        onFailed: () => this.#cancel(),
      });
    }
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
    if (head === "too_large") {
      this.#refuseResponse(head, RESET.tooLarge, "the response's head is too large");
      return true;
    }
    const { status, pairs } = head;
    // Until the end of the response, because the platform and the recording hold it as long.
    if (!this.#place.hold(countResponseHeadBytes(frame.payload, pairs))) {
      this.#refuseResponse("unavailable", RESET.canceled, SLOW_VISITORS);
      return true;
    }
    const held: HeldResponse = { kind: "held", status, pairs, chunks: [], bytes: 0, end: "open" };
    this.#phase = held;
    this.#recording?.startResponse(status, pairs, frame.payload.byteLength);
    if (frame.flags & FLAG.end) this.#endResponse();
    // After the whole message is read: a body that came in the same message needs no stream.
    this.#link.afterMessage(() => {
      this.#queue.push(isWhole(held) ? held.bytes : 0, () => this.#respond(held));
    });
    return true;
  }

  #refuseResponse(outcome: ErrorCode | "too_large", code: ResetCode, reason: string): void {
    this.#reset(code, reason);
    this.#finish("cut");
    this.#settle(outcome);
  }

  #receiveData(frame: Frame): boolean {
    const { payload } = frame;
    if (!this.#window.recordReceived(payload.byteLength)) return false;
    this.#deps.usage.countOut(payload.byteLength);
    this.#recording?.addResponseBytes(payload);
    if (payload.byteLength > 0 && !this.#takeChunk(payload)) this.#overflow();
    else if (frame.flags & FLAG.end) this.#endResponse();
    return true;
  }

  /** @returns false when the tunnel may not buffer the chunk, or drops no more. */
  #takeChunk(chunk: Uint8Array): boolean {
    const phase = this.#phase;
    if (phase.kind === "streaming") return phase.body.write(chunk);
    if (phase.kind === "discarding") phase.bytes += chunk.byteLength;
    if (phase.kind !== "held") {
      this.#grant(chunk.byteLength);
      return phase.kind !== "discarding" || phase.bytes <= DROPPED_MAX_BYTES;
    }
    if (!this.#link.buffered.hold(chunk.byteLength)) return false;
    phase.chunks.push(compactView(chunk));
    phase.bytes += chunk.byteLength;
    return true;
  }

  /** Visitors take their responses too slowly, and this one needs memory that others use. Or the response is not to have a body. */
  #overflow(): void {
    const isDropped = this.#phase.kind === "discarding";
    this.#reset(RESET.canceled, isDropped ? "a body where none belongs" : SLOW_VISITORS);
    this.#cut(isDropped ? "origin_failed" : "unavailable");
  }

  #endResponse(): void {
    const phase = this.#phase;
    this.#sendCredit(this.#window.end());
    const hasWholeRequest = this.#upload?.isFinished() ?? true;
    if (hasWholeRequest) this.#link.finish(this.#id);
    else this.#reset(RESET.canceled, "the response ended before the request body");
    this.#finish("complete");
    if (phase.kind === "streaming") phase.body.end();
    if (phase.kind === "discarding") this.#place.leave();
    if (phase.kind !== "held") this.#recording?.complete();
  }

  /** The agent will not send the rest of its response. */
  #cut(code: ErrorCode): void {
    const phase = this.#phase;
    this.#finish("cut");
    this.#recording?.fail(code);
    if (phase.kind === "streaming") phase.body.truncate();
    if (phase.kind === "discarding") this.#place.leave();
  }

  // ── Inside: to the visitor ──

  #respond(held: HeldResponse): void {
    const outcome = this.#buildResponse(held);
    // A body that streams is recorded as complete when it ends.
    if (outcome instanceof Response && this.#phase.kind !== "streaming") {
      this.#recording?.complete();
    }
    this.#settle(outcome);
  }

  /** Leaves the phase `held`. */
  #buildResponse(held: HeldResponse): ExchangeOutcome {
    const { status, pairs, chunks, end } = held;
    try {
      const headers = buildResponseHeaders(pairs, this.#requestId);
      const init = { status, headers, encodeBody: "manual" as const };
      if (this.#head.isHeadMethod || hasNoBody(status)) {
        this.#phase = end === "open" ? { kind: "discarding", bytes: held.bytes } : DONE[end];
        this.#grantHeld(held);
        if (end !== "open") this.#place.leave();
        return new Response(null, init);
      }
      const length = parseContentLength(headers);
      if (end === "cut") {
        this.#phase = DONE.cut;
        this.#releaseHeld(held);
        return "origin_failed";
      }
      if (end === "complete") {
        if (length !== null && length !== held.bytes) {
          this.#phase = DONE.complete;
          this.#grantHeld(held);
          return "origin_failed";
        }
        if (isWhole(held)) return this.#buildWholeResponse(held, init);
      }
      const body = this.#createBody(headers, end === "complete" ? held.bytes : length);
      if (body.truncationSignal === "cut") markSilentTruncation(headers);
      const response = new Response(body.readable, init);
      this.#phase = end === "complete" ? DONE.complete : { kind: "streaming", body };
      if (end !== "complete") this.#watch();
      for (const chunk of chunks) body.writeHeld(chunk);
      if (end === "complete") body.end();
      return response;
    } catch {
      // A status or a header that HTTP does not allow.
      this.#grantHeld(held);
      this.#finish("cut");
      this.#phase = DONE.cut;
      this.#reset(RESET.protocolError, "invalid HTTP response");
      return "origin_failed";
    }
  }

  #buildWholeResponse(held: HeldResponse, init: ResponseInit): Response {
    const { chunks } = held;
    const body = chunks.length === 1 ? chunks[0]! : concatBytes(chunks);
    this.#phase = DONE.complete;
    this.#grantHeld(held);
    this.#place.leave();
    return new Response(body, init);
  }

  #createBody(headers: ResponseHeaders, length: number | null): ResponseBody {
    const isTruncationVisible = length !== null || this.#deps.onCloudflare;
    return new ResponseBody(length, {
      queue: this.#queue,
      buffered: this.#link.buffered,
      truncationSignal: getTruncationSignal(headers, isTruncationVisible),
      onWritten: (bytes) => {
        this.#watched?.recordWrite();
        this.#grant(bytes);
      },
      onDiscarded: (bytes) => this.#discard(bytes),
      onClosed: () => this.#place.leave(),
    });
  }

  #watch(): void {
    const key = getConnectionKey(this.#request.cf);
    if (key === null) return;
    this.#watched = this.#deps.departed?.watch(key, () => this.#cancel());
  }

  #grantHeld(held: HeldResponse): void {
    this.#grant(held.bytes);
    this.#releaseHeld(held);
  }

  #releaseHeld(held: HeldResponse): void {
    for (const { byteLength } of held.chunks) this.#link.buffered.release(byteLength);
    held.chunks = [];
    held.bytes = 0;
  }

  /** The visitor disconnected and takes no more bytes. Those of a complete response still need credit. */
  #discard(bytes: number): void {
    if (this.#phase === DONE.complete) this.#grant(bytes);
    else this.#cancel();
  }

  #grant(bytes: number): void {
    this.#sendCredit(this.#window.recordConsumed(bytes));
  }

  #sendCredit(bytes: number): void {
    if (bytes > 0) this.#link.send((writer) => writer.writeCredit(this.#id, bytes));
  }

  // ── Inside: the end ──

  /** The visitor disconnected. */
  #cancel(): void {
    const phase = this.#phase;
    if (!this.#isOpen) return;
    this.#finish("cut");
    this.#recording?.abort();
    if (phase.kind === "streaming") phase.body.discard();
    else this.#queue.clear();
    this.#reset(RESET.canceled, "the visitor disconnected");
    if (phase.kind === "held") this.#releaseHeld(phase);
    if (phase.kind === "waiting" || phase.kind === "held") this.#settle("agent_offline");
    else this.#place.leave();
  }

  /** Ends the stream in both directions. An upload that continued would use up the connection's window. */
  #reset(code: ResetCode, reason: string): void {
    this.#upload?.cancel();
    this.#link.reset(this.#id, code, reason);
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
    this.#watched?.unwatch();
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
