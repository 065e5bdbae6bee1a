/** One visitor's request at the local server: sent as it came, answered as it is. */
import { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { ReceiveWindow } from "../../protocol/wire/flow.ts";
import { FLAG, FRAME, RESET, type Frame, type ResetCode } from "../../protocol/wire/frames.ts";
import { FRAME_DATA_MAX_BYTES, STREAM_WINDOW_BYTES } from "../../protocol/limits.ts";
import type { Stream, Wire } from "../wire.ts";
import { latin1OfUtf8, responsePairs } from "./header-bytes.ts";
import type { Origin } from "./origin.ts";
import { replaceValues } from "../../shared/header-lines.ts";

export class HttpStream implements Stream {
  readonly ends = true;
  readonly #wire: Wire;
  readonly #id: number;
  readonly #origin: Origin;
  readonly #method: string;
  readonly #target: string;
  readonly #pairs: string[];
  readonly #startedAtMs = performance.now();
  readonly #window = new ReceiveWindow(STREAM_WINDOW_BYTES);
  /** The visitor's body; null where the request has none. */
  readonly #upload: Readable | null;
  #uploadQueue: Uint8Array[] = [];
  #uploadEnded = false;
  #uploadWanted = false;
  #abortRequest: ((reason?: Error) => void) | undefined;
  #resume: (() => void) | undefined;
  #status = 0;
  /** The part of the answer that the tunnel has no credit for yet. */
  #rest: Buffer | undefined;
  #completed = false;
  #over = false;
  #attempts = 0;
  /** The start of an answer that may be a development server's refusal of the host name. */
  #suspect: { pairs: string[] } | undefined;

  constructor(origin: Origin, wire: Wire, id: number, head: string[], flags: number) {
    const [method, target, ...pairs] = head as [string, string, ...string[]];
    this.#origin = origin;
    this.#wire = wire;
    this.#id = id;
    this.#method = method;
    this.#target = latin1OfUtf8(target);
    this.#pairs = pairs;
    this.#upload = flags & FLAG.end ? null : new Readable({ read: () => this.#pull() });
    // Its errors reach the request; without a listener they would end the process.
    this.#upload?.on("error", () => undefined);
  }

  // ── Called by the wire ──

  start(): void {
    this.#dispatch();
  }

  frame(frame: Frame): void {
    if (frame.type !== FRAME.data || this.#uploadEnded || !this.#upload) return;
    if (!this.#window.recordReceived(frame.payload.byteLength)) {
      return this.#fail(RESET.protocolError, "more than the window");
    }
    if (frame.payload.byteLength > 0) this.#uploadQueue.push(frame.payload);
    if (frame.flags & FLAG.end) {
      this.#uploadEnded = true;
      this.#window.end();
    }
    if (this.#uploadWanted) this.#pull();
  }

  abort(): void {
    this.#over = true;
    this.#abortRequest?.(new Error("the visitor left"));
    this.#upload?.destroy();
  }

  // ── Upload ──

  /** One chunk when the request wants one; its bytes are granted again as it leaves our queue. */
  #pull(): void {
    const chunk = this.#uploadQueue.shift();
    this.#uploadWanted = chunk === undefined;
    if (chunk !== undefined) {
      this.#upload?.push(chunk);
      const grant = this.#window.recordConsumed(chunk.byteLength);
      if (grant > 0) this.#wire.send((writer) => writer.writeCredit(this.#id, grant));
    } else if (this.#uploadEnded) {
      this.#uploadWanted = false;
      this.#upload?.push(null);
    }
  }

  // ── Request ──

  #dispatch(): void {
    this.#attempts += 1;
    const pairs = [...this.#pairs];
    this.#origin.hostHeader.rewriteRequest(pairs);
    replaceValues(pairs, (_name, value) => latin1OfUtf8(value));
    const options: Dispatcher.DispatchOptions = {
      path: this.#target,
      method: this.#method,
      headers: pairs,
      body: this.#upload,
      // The tunnel repeats what may be repeated; here nothing is sent twice unasked.
      idempotent: false,
    };
    try {
      this.#origin.dispatch(options, this.#handler());
    } catch (error) {
      this.#fail(RESET.originFailed, messageOf(error));
    }
  }

  /** undici's own callbacks, without the objects that its promises would make of an answer. */
  #handler(): Dispatcher.DispatchHandler {
    return {
      onConnect: (abort) => {
        this.#abortRequest = abort;
        if (this.#over) abort();
      },
      onHeaders: (status, rawHeaders, resume) => this.#onHeaders(status, rawHeaders, resume),
      onData: (chunk) => this.#onData(chunk),
      onComplete: () => this.#onComplete(),
      onError: (error) => this.#onError(error),
    };
  }

  #onHeaders(status: number, rawHeaders: Buffer[], resume: () => void): boolean {
    if (status < 200) return true; // Interim answers (1xx) end here.
    this.#resume = resume;
    this.#status = status;
    const pairs = responsePairs(rawHeaders);
    if (status > 599) {
      this.#fail(RESET.originFailed, `status ${status} is none of HTTP's`);
      return true;
    }
    if (this.#origin.hostHeader.mayBeRefusal(status) && !this.#upload) this.#suspect = { pairs };
    else this.#sendHead(pairs);
    return true;
  }

  #sendHead(pairs: string[]): void {
    this.#origin.hostHeader.rewriteResponse(pairs, this.#origin.publicOrigin);
    this.#wire.send((writer) => writer.writeJson(FRAME.response, 0, this.#id, [this.#status, ...pairs]));
  }

  #onData(chunk: Buffer): boolean {
    if (this.#over) return true;
    if (this.#suspect && this.#isRefusedName(chunk)) return true;
    return this.#sendData(chunk);
  }

  /** @returns false when the local server should pause. */
  #sendData(chunk: Buffer): boolean {
    let rest = chunk;
    while (rest.byteLength > 0) {
      const available = this.#wire.windows.available(this.#id);
      if (available <= 0) {
        this.#rest = rest;
        this.#wire.windows.whenAvailable(this.#id, () => this.#sendRest());
        return false;
      }
      const part = rest.subarray(0, Math.min(available, FRAME_DATA_MAX_BYTES));
      this.#wire.windows.recordSent(this.#id, part.byteLength);
      this.#wire.send((writer) => writer.writeBytes(FRAME.data, 0, this.#id, part));
      rest = rest.subarray(part.byteLength);
    }
    return true;
  }

  #sendRest(): void {
    const rest = this.#rest;
    if (this.#over || !rest) return;
    this.#rest = undefined;
    if (!this.#sendData(rest)) return;
    if (this.#completed) this.#finish();
    else this.#resume?.();
  }

  #onComplete(): void {
    if (this.#over) return;
    if (this.#suspect && this.#isRefusedName(Buffer.alloc(0))) return;
    this.#completed = true;
    if (!this.#rest) this.#finish();
  }

  #finish(): void {
    this.#over = true;
    this.#wire.send((writer) => writer.writeBytes(FRAME.data, FLAG.end, this.#id, new Uint8Array()));
    this.#wire.windows.end(this.#id);
    this.#wire.finish(this.#id);
    this.#report(this.#status);
  }

  /** @returns true when the answer is given up and the request sent again by the local server's own name. */
  #isRefusedName(start: Buffer): boolean {
    const { pairs } = this.#suspect!;
    this.#suspect = undefined;
    if (this.#origin.hostHeader.refusedBy(start.toString("latin1"))) {
      const abort = this.#abortRequest;
      this.#status = 0;
      this.#abortRequest = undefined;
      abort?.(new Error("asked again by another name"));
      this.#origin.told(
        "the local server refuses the public host name: its own is used from now on",
      );
      this.#dispatch();
      return true;
    }
    this.#sendHead(pairs);
    return false;
  }

  #onError(error: Error & { code?: string }): void {
    if (this.#over || error.message === "asked again by another name") return;
    const isUnanswered = this.#status === 0;
    // A kept-alive connection that the local server closed as the request was on its way.
    const wasStale = isUnanswered && error.code === "UND_ERR_SOCKET" && this.#attempts === 1;
    if (wasStale && !this.#upload && isSafe(this.#method)) return this.#dispatch();
    this.#fail(isUnanswered ? resetCodeOf(error) : RESET.originFailed, messageOf(error));
  }

  #fail(code: ResetCode, reason: string): void {
    if (this.#over) return;
    this.#over = true;
    this.#wire.reset(this.#id, code, reason);
    this.#abortRequest?.(new Error(reason));
    this.#upload?.destroy();
    this.#report(code === RESET.originTimeout ? 504 : 502, reason);
  }

  #report(status: number, problem?: string): void {
    this.#origin.finished({
      method: this.#method,
      path: this.#target,
      status,
      durationMs: Math.round((performance.now() - this.#startedAtMs) * 10) / 10,
      problem,
    });
  }
}

/** RFC 9110 §9.2.1: these change nothing at the server, however often they are sent. */
function isSafe(method: string): boolean {
  return method === "GET" || method === "HEAD" || method === "OPTIONS";
}

function resetCodeOf(error: Error & { code?: string }): ResetCode {
  switch (error.code) {
    case "ECONNREFUSED":
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "EADDRNOTAVAIL":
    case "UND_ERR_CONNECT_TIMEOUT":
    case "ETIMEDOUT":
      return RESET.originUnreachable;
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
      return RESET.originTimeout;
    default:
      return error instanceof AggregateError ? RESET.originUnreachable : RESET.originFailed;
  }
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(messageOf).join("; ");
  return error instanceof Error ? error.message : String(error);
}
