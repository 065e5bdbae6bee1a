/** One visitor's HTTP request, sent to the local server unchanged; the response goes back unchanged. */
import type { Dispatcher } from "undici";
import { FLAG, FRAME, RESET, type Frame, type ResetCode } from "../../protocol/wire/frames.ts";
import { FRAME_DATA_MAX_BYTES } from "../../protocol/limits.ts";
import type { RequestOpening, Stream, StreamWire } from "../tunnel/wire.ts";
import { findHeader, isEventStream } from "../../shared/raw-headers.ts";
import { toResponsePairs, utf8ToLatin1 } from "./header-bytes.ts";
import type { RequestReport } from "../library/types.ts";
import { encodeResponseHead } from "./response-head.ts";
import type { OriginServer } from "./origin-server.ts";
import {
  describeOriginError,
  isClosedConnection,
  mayExpectTls,
  toReportedStatus,
  toResetCode,
} from "./origin-error.ts";
import { RequestBody } from "./request-body.ts";

/**
 * How far the response is.
 * - `awaiting`: the local server has not answered.
 * - `held`: its response head is held back, because it may be a development server's refusal of the host name.
 * - `responding`: the response head was sent, and the body is on its way.
 * - `flushing`: the local server has finished, and the rest of the body waits for credit.
 * - `ended`: the response is complete, or was reset by either side.
 */
type Phase = "awaiting" | "held" | "responding" | "flushing" | "ended";

const RETRIED_WITH_LOCAL_NAME = "sent again with the local server's own host name";

export class HttpStream implements Stream {
  readonly #wire: StreamWire;
  readonly #id: number;
  readonly #origin: OriginServer;
  readonly #report: RequestReport;
  readonly #requestPairs: string[];
  readonly #startedAtMs = performance.now();
  /** null when the request has no body. */
  readonly #body: RequestBody | null;
  #phase: Phase = "awaiting";
  #attempts = 0;
  /** While an event stream is open. */
  #isEventStream = false;
  #abortRequest: ((reason?: Error) => void) | undefined;
  #resumeResponse: (() => void) | undefined;
  /** The response's headers in the phase `held`. */
  #heldPairs: string[] = [];
  /** The part of the response that the tunnel has no credit for yet. */
  #unsent: Buffer | undefined;

  constructor(origin: OriginServer, wire: StreamWire, id: number, request: RequestOpening) {
    const { head, flags, requestId } = request;
    const [method, target, ...pairs] = head as [string, string, ...string[]];
    this.#origin = origin;
    this.#wire = wire;
    this.#id = id;
    this.#report = origin.createReport({
      kind: "request",
      method,
      path: utf8ToLatin1(target),
      requestId,
    });
    this.#requestPairs = pairs;
    this.#body = flags & FLAG.end ? null : new RequestBody((bytes) => this.#sendCredit(bytes));
    origin.storedRequests?.add(this.#report, head, this.#body !== null);
  }

  /** Event streams that answer a POST, such as those of MCP servers and language models, end by themselves. */
  get isDrainable(): boolean {
    return !this.#isEventStream || this.#report.method !== "GET";
  }

  /** Changes until the end of the stream. */
  get report(): RequestReport {
    return this.#report;
  }

  // ── Called by the wire ──

  start(): void {
    this.#dispatch();
  }

  receive(frame: Frame): void {
    if (frame.type !== FRAME.data || !this.#body) return;
    const isLast = (frame.flags & FLAG.end) !== 0;
    this.#report.bytesIn += frame.payload.byteLength;
    this.#origin.storedRequests?.addBody(this.#report, frame.payload, isLast);
    if (this.#body.receive(frame.payload, isLast)) return;
    this.#fail(RESET.protocolError, "the request body exceeds its window");
  }

  abort(reason: string): void {
    if (this.#phase === "ended") return;
    this.#phase = "ended";
    this.#abortRequest?.(new Error(reason));
    this.#body?.destroy();
    this.#report.abortReason = reason;
    this.#reportEnd(this.#report.status);
  }

  // ── Request ──

  #dispatch(): void {
    this.#attempts += 1;
    const pairs = [...this.#requestPairs];
    this.#origin.rewriteRequest(pairs);
    for (let i = 1; i < pairs.length; i += 2) pairs[i] = utf8ToLatin1(pairs[i]!);
    const options: Dispatcher.DispatchOptions = {
      path: this.#report.path,
      method: this.#report.method,
      headers: pairs,
      body: this.#body?.stream ?? null,
      // The tunnel decides which requests are sent again; undici must not do it by itself.
      idempotent: false,
    };
    try {
      this.#origin.dispatch(options, this.#createHandler());
    } catch (error) {
      this.#fail(RESET.originFailed, this.#describe(error as Error));
    }
  }

  /** undici's own callbacks: they avoid the objects that its promises would allocate for each response. */
  #createHandler(): Dispatcher.DispatchHandler {
    return {
      onConnect: (abort) => {
        this.#abortRequest = abort;
        if (this.#phase === "ended") abort();
      },
      onHeaders: (status, rawHeaders, resume) => this.#onHeaders(status, rawHeaders, resume),
      onData: (chunk) => this.#onData(chunk),
      onComplete: () => this.#onComplete(),
      onError: (error) => this.#onError(error),
    };
  }

  #sendCredit(bytes: number): void {
    this.#wire.send((writer) => writer.writeCredit(this.#id, bytes));
  }

  // ── Response ──

  #onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200) return true; // Interim responses (1xx) are not forwarded.
    this.#resumeResponse = resume;
    this.#report.status = status;
    const pairs = toResponsePairs(rawHeaders);
    if (status > 599) {
      this.#fail(RESET.originFailed, `the local server sent the invalid status ${status}`);
      return true;
    }
    if (this.#origin.hostHeader.mayBeRefusal(status) && !this.#body) {
      this.#phase = "held";
      this.#heldPairs = pairs;
    } else {
      this.#sendHead(pairs);
    }
    return true;
  }

  #sendHead(pairs: string[]): void {
    this.#phase = "responding";
    this.#origin.hostHeader.rewriteResponse(pairs, this.#origin.publicOrigin);
    const head = encodeResponseHead(this.#report.status, pairs);
    if ("problem" in head) return this.#fail(RESET.originFailed, head.problem);
    this.#wire.send((writer) => writer.writeText(FRAME.response, 0, this.#id, head.payload));
    if (!isEventStream(findHeader(pairs, "content-type") ?? "")) return;
    this.#isEventStream = true;
    this.#report.kind = "events";
    this.#origin.reportOpenStream(this.#report);
  }

  /** @returns false when the local server must pause. */
  #onData(chunk: Buffer): boolean {
    switch (this.#phase) {
      case "responding":
        return this.#sendData(chunk);
      case "held":
        return this.#retryWithLocalName(chunk) || this.#onData(chunk);
      case "awaiting":
      case "flushing":
      case "ended":
        // The stream has ended, so this response is discarded.
        return true;
    }
  }

  #onComplete(): void {
    switch (this.#phase) {
      case "held":
        if (!this.#retryWithLocalName(Buffer.alloc(0))) this.#onComplete();
        return;
      case "responding":
        if (this.#unsent) this.#phase = "flushing";
        else this.#finish();
        return;
      case "awaiting":
      case "flushing":
      case "ended":
        return;
    }
  }

  /** @returns whether all of it was sent; otherwise the rest is sent when there is credit. */
  #sendData(chunk: Buffer): boolean {
    let rest = chunk;
    while (rest.byteLength > 0) {
      const available = this.#wire.windows.available(this.#id);
      if (available <= 0) {
        this.#unsent = rest;
        this.#wire.windows.whenAvailable(this.#id, () => this.#sendUnsent());
        return false;
      }
      const part = rest.subarray(0, Math.min(available, FRAME_DATA_MAX_BYTES));
      this.#wire.windows.recordSent(this.#id, part.byteLength);
      this.#report.bytesOut += part.byteLength;
      this.#wire.send((writer) => writer.writeData(this.#id, part));
      rest = rest.subarray(part.byteLength);
    }
    return true;
  }

  #sendUnsent(): void {
    const rest = this.#unsent;
    if (this.#phase === "ended" || !rest) return;
    this.#unsent = undefined;
    if (!this.#sendData(rest)) return;
    if (this.#phase === "flushing") this.#finish();
    else this.#resumeResponse?.();
  }

  /**
   * Decides about a held response by its first bytes.
   * @returns true when it is dropped and the request is sent again with the local server's own name; false when it is
   * the response, whose head is sent now, or is refused.
   */
  #retryWithLocalName(start: Buffer): boolean {
    const pairs = this.#heldPairs;
    this.#heldPairs = [];
    if (!this.#origin.hostHeader.rewriteIfRefused(start.toString("latin1"))) {
      this.#sendHead(pairs);
      return false;
    }
    const abort = this.#abortRequest;
    this.#phase = "awaiting";
    this.#report.status = 0;
    this.#abortRequest = undefined;
    abort?.(new Error(RETRIED_WITH_LOCAL_NAME));
    this.#origin.notify(
      "the local server refuses the public host name; its own host name is used from now on",
    );
    this.#dispatch();
    return true;
  }

  #onError(error: NodeJS.ErrnoException): void {
    if (this.#phase === "ended" || error.message === RETRIED_WITH_LOCAL_NAME) return;
    const isUnanswered = this.#phase === "awaiting";
    // The local server closed or reset a kept-alive connection just as the request was sent on it.
    const wasStale = isUnanswered && isClosedConnection(error) && this.#attempts === 1;
    if (wasStale && !this.#body && isSafe(this.#report.method)) return this.#dispatch();
    // Another agent may send the request to its local server only if this one has received nothing of it.
    const mayHaveArrived = this.#abortRequest !== undefined || this.#attempts > 1;
    const isRepeatable = !mayHaveArrived || isSafe(this.#report.method);
    const code = isUnanswered ? toResetCode(error) : RESET.originFailed;
    if (isUnanswered && mayExpectTls(error)) void this.#origin.reportNoHttp();
    const isUnsure = code === RESET.originUnreachable && !isRepeatable;
    this.#fail(isUnsure ? RESET.originFailed : code, this.#describe(error));
  }

  #describe(error: Error): string {
    return describeOriginError(error, this.#origin.target);
  }

  // ── End ──

  #finish(): void {
    this.#phase = "ended";
    this.#wire.send((writer) =>
      writer.writeBytes(FRAME.data, FLAG.end, this.#id, new Uint8Array()),
    );
    this.#wire.windows.end(this.#id);
    this.#wire.finish(this.#id);
    this.#reportEnd(this.#report.status);
  }

  #fail(code: ResetCode, reason: string): void {
    if (this.#phase === "ended") return;
    // The visitor has got this status; only the body is incomplete.
    const hasSentHead = this.#phase === "responding" || this.#phase === "flushing";
    this.#phase = "ended";
    // First, so that the tunnel knows it when it chooses an agent for this request again.
    if (code === RESET.originUnreachable) this.#origin.reportUnreachable();
    this.#wire.reset(this.#id, code, reason);
    this.#abortRequest?.(new Error(reason));
    this.#body?.destroy();
    this.#reportEnd(hasSentHead ? this.#report.status : toReportedStatus(code), reason);
  }

  #reportEnd(status: number, problem?: string): void {
    const report = this.#report;
    report.status = status;
    report.durationMs = Math.round((performance.now() - this.#startedAtMs) * 10) / 10;
    report.problem = problem;
    this.#closeStream();
    this.#origin.reportRequest(report);
  }

  #closeStream(): void {
    if (this.#isEventStream) this.#origin.reportClosedStream(this.#report);
    this.#isEventStream = false;
  }
}

/** RFC 9110 §9.2.1: these change nothing at the server, however often they are sent. */
function isSafe(method: string): boolean {
  return method === "GET" || method === "HEAD" || method === "OPTIONS";
}
