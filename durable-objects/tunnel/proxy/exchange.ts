/** One visitor's HTTP request on its way to an agent, and the answer on its way back. */
import { ReceiveWindow } from "../../../protocol/wire/flow.ts";
import { FLAG, FRAME, RESET, parseResponseHead, type Frame } from "../../../protocol/wire/frames.ts";
import type { ErrorCode } from "../../../protocol/errors.ts";
import { STREAM_WINDOW_BYTES } from "../../../protocol/limits.ts";
import type { AgentLink, Stream } from "../agents/agent-link.ts";
import type { Recording } from "../captures/recording.ts";
import { parseContentLength, hasNoBody, buildResponseHeaders, type RequestHead } from "./heads.ts";
import { PacedQueue } from "./pacer.ts";
import { ResponseBody, type TruncationSignal } from "./response-body.ts";
import { sendBody, type Upload } from "./request-body.ts";
import type { Usage } from "../metrics/usage.ts";

/**
 * How an exchange came out: an answer, a failure to report, or `lost`, when the agent went away before it
 * answered. What was never forwarded, or may be repeated, can then go to the next agent.
 */
export type ExchangeOutcome = Response | ErrorCode | "lost" | "refused";

/** What of a request is needed to send it. */
export type ForwardableRequest = Pick<Request, "method" | "body" | "bodyUsed" | "signal">;

export interface ExchangeDeps {
  usage: Usage;
  hosted: boolean;
  /** Told when an exchange will send and receive nothing more. */
  onDone(): void;
}

/** RFC 9110 §9.2.2. */
const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

export class Exchange implements Stream {
  readonly #link: AgentLink;
  readonly #surroundings: ExchangeDeps;
  readonly #head: RequestHead;
  readonly #id: number;
  readonly #window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  readonly #queue: PacedQueue;
  readonly #recording: Recording | null;
  readonly #settle: (outcome: ExchangeOutcome) => void;
  #answer: { status: number; pairs: string[] } | undefined;
  /** Body frames that came before the answer was built. */
  #early: Uint8Array[] = [];
  /** No body belongs to this answer; what comes of one is dropped. */
  #isBodiless = false;
  /** The visitor has the head of the answer. */
  #isAnswered = false;
  #body: ResponseBody | undefined;
  #upload: Upload | undefined;
  #ended = false;
  #over = false;

  /** @param settle called once with how it came out. */
  constructor(
    link: AgentLink,
    request: ForwardableRequest,
    head: RequestHead,
    surroundings: ExchangeDeps,
    recording: Recording | null,
    settle: (outcome: ExchangeOutcome) => void,
  ) {
    this.#link = link;
    this.#surroundings = surroundings;
    this.#head = head;
    this.#recording = recording;
    this.#settle = settle;
    this.#queue = new PacedQueue(link.pace.toVisitors);
    this.#id = link.open(this);
    link.send((writer) => writer.writeJson(FRAME.request, head.flags, this.#id, head.parts));
    if (request.body !== null)
      this.#upload = sendBody(request.body, link, this.#id, surroundings.usage, recording);
    request.signal.addEventListener("abort", () => this.#cancel(), { once: true });
  }

  /** Whether sending the same request once more can't do anything twice. */
  static canRepeat(request: ForwardableRequest): boolean {
    return request.body === null && IDEMPOTENT.has(request.method);
  }

  // ── Called by the link ──

  onFrame(frame: Frame): boolean {
    if (frame.type === FRAME.response && !this.#answer) return this.#receiveHead(frame);
    if (frame.type === FRAME.data && this.#answer) return this.#receiveData(frame);
    return false;
  }

  onReset(code: number): void {
    this.#upload?.cancel();
    if (code === RESET.refused && !this.#answer) return this.#finishWith("refused");
    if (!this.#answer) return this.#finishWith(failureOf(code));
    this.#cut(failureOf(code));
  }

  onConnectionLost(): void {
    this.#upload?.cancel();
    if (this.#answer) this.#cut("agent_offline");
    else this.#finishWith("lost");
  }

  // ── Inside ──

  #receiveHead(frame: Frame): boolean {
    const answer = parseResponseHead(frame.payload);
    if (!answer) return false;
    this.#answer = answer;
    this.#recording?.startResponse(answer.status, answer.pairs);
    if (frame.flags & FLAG.end) this.#end();
    // Not before this message has been read to its end: a body that came with its head needs no stream.
    this.#link.afterMessage(() => {
      const bytes = this.#ended ? this.#earlyBytes : 0;
      this.#queue.push(bytes, () => this.#settleAnswered());
    });
    return true;
  }

  #receiveData(frame: Frame): boolean {
    const { payload } = frame;
    if (!this.#window.recordReceived(payload.byteLength)) return false;
    this.#surroundings.usage.countOut(payload.byteLength);
    this.#recording?.addResponseBytes(payload);
    if (payload.byteLength > 0) {
      if (this.#body) this.#body.write(payload);
      else this.#early.push(payload);
      if (this.#isBodiless) this.#discardEarly();
    }
    if (frame.flags & FLAG.end) this.#end();
    return true;
  }

  #end(): void {
    this.#ended = true;
    this.#window.end();
    this.#setOver();
    this.#body?.end();
    if (this.#isAnswered) this.#recording?.complete();
    if (!this.#upload || this.#upload.isFinished()) return this.#link.finish(this.#id);
    // The answer is whole before the request is: nobody will read the rest of it.
    this.#upload.cancel();
    this.#link.reset(this.#id, RESET.cancelled, "answered before the request was whole");
  }

  #setOver(): void {
    if (this.#over) return;
    this.#over = true;
    this.#surroundings.onDone();
  }

  #finishWith(outcome: ExchangeOutcome): void {
    this.#setOver();
    this.#settle(outcome);
  }

  #cut(code: ErrorCode): void {
    this.#setOver();
    this.#recording?.fail(code);
    this.#body?.truncate();
  }

  /** The visitor left. */
  #cancel(): void {
    if (this.#over) return;
    this.#setOver();
    this.#recording?.abort();
    this.#queue.clear();
    this.#upload?.cancel();
    this.#link.reset(this.#id, RESET.cancelled, "the visitor left");
    this.#settle("agent_offline");
  }

  #settleAnswered(): void {
    const outcome = this.#buildAnswer();
    this.#isAnswered = outcome instanceof Response;
    if (this.#isAnswered && (this.#ended || this.#isBodiless)) this.#recording?.complete();
    this.#settle(outcome);
  }

  #buildAnswer(): ExchangeOutcome {
    const { status, pairs } = this.#answer!;
    try {
      const headers = buildResponseHeaders(pairs);
      const init = { status, headers, encodeBody: "manual" as const };
      if (this.#head.isHead || hasNoBody(status)) {
        this.#isBodiless = true;
        this.#discardEarly();
        return new Response(null, init);
      }
      const length = parseContentLength(headers);
      if (this.#ended) return this.#wholeAnswer(length, init);
      if (this.#over) return "origin_failed";
      const cutsShow = length !== null || this.#surroundings.hosted;
      this.#body = new ResponseBody(
        length,
        this.#queue,
        cutBy(headers, cutsShow),
        (bytes) => this.#grant(bytes),
        (bytes) => this.#drop(bytes),
      );
      for (const chunk of this.#early) this.#body.write(chunk);
      this.#early = [];
      return new Response(this.#body.readable, init);
    } catch {
      // A status or a header line that HTTP does not allow.
      this.#discardEarly();
      this.#setOver();
      this.#link.reset(this.#id, RESET.protocolError, "no HTTP answer");
      return "origin_failed";
    }
  }

  #wholeAnswer(length: number | null, init: ResponseInit): ExchangeOutcome {
    const body = joined(this.#early);
    this.#discardEarly();
    if (length !== null && body.byteLength !== length) return "origin_failed";
    return new Response(body, init);
  }

  get #earlyBytes(): number {
    return this.#early.reduce((sum, chunk) => sum + chunk.byteLength, 0);
  }

  #discardEarly(): void {
    const held = this.#earlyBytes;
    this.#early = [];
    this.#grant(held);
  }

  /** The visitor left: nobody takes the rest. What the agent has sent to its end still counts there. */
  #drop(bytes: number): void {
    if (this.#ended) this.#grant(bytes);
    else this.#cancel();
  }

  #grant(bytes: number): void {
    const grant = this.#window.recordConsumed(bytes);
    if (grant > 0) this.#link.send((writer) => writer.writeCredit(this.#id, grant));
  }
}

function failureOf(code: number): ErrorCode {
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
 * How to end a body so that nobody takes it for whole. Where its length was announced, the visitor sees
 * that bytes are missing, and so does a visitor of the hosted edge. workerd itself ends a body without
 * length by the chunk that means "whole" even when it is aborted: there it stays open until the visitor
 * leaves — but for server-sent events, whose readers take every end for a cue to reconnect.
 */
function cutBy(headers: Headers, cutsShow: boolean): TruncationSignal {
  if (cutsShow) return "abort";
  return headers.get("content-type")?.startsWith("text/event-stream") ? "end" : "silence";
}

function joined(chunks: Uint8Array[]): Uint8Array {
  if (chunks.length === 1) return chunks[0]!;
  const whole = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.byteLength;
  }
  return whole;
}
