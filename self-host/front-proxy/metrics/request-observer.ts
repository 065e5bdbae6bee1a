/**
 * Counts the requests of one connection. It reads only the first bytes of a response, which a visitor waits for before it
 * sends the next request: where the response ends is not known here, and need not be.
 */
import { REQUEST_ID_HEADER } from "../../../protocol/errors.ts";
import type { RequestTrace } from "../../../shared/tracing/request-trace.ts";
import { toBuffer } from "../buffers.ts";
import { getRefusalStatus, type Refusal } from "../refusals.ts";
import type { FrontProxyMetrics, Handler, Outcome } from "./front-proxy-metrics.ts";

const HEAD_END = "\r\n\r\n";
/** `HTTP/1.1 `, before the three digits of the status. */
const STATUS_START = 9;
const STATUS_END = 12;
const ZERO = 0x30;
const SWITCHING_PROTOCOLS = 101;

export class RequestObserver {
  readonly #metrics: FrontProxyMetrics;
  readonly #trace: RequestTrace;
  #handler: Handler = "front_proxy";
  #startedAtMs = 0;
  /** A request was forwarded, and its response has not begun. */
  #isWaiting = false;

  constructor(metrics: FrontProxyMetrics, trace: RequestTrace) {
    this.#metrics = metrics;
    this.#trace = trace;
  }

  /** The head of a request was forwarded. */
  start(handler: Handler): void {
    if (this.#isWaiting) this.#end("unknown");
    this.#handler = handler;
    this.#startedAtMs = performance.now();
    this.#isWaiting = true;
  }

  /** @param bytes of the server, in the order in which they arrive. */
  receive(bytes: Uint8Array): void {
    if (!this.#isWaiting) return;
    const status = readFinalStatus(bytes);
    if (status === "interim") return;
    const durationMs = performance.now() - this.#startedAtMs;
    this.#metrics.countLatency(this.#handler, durationMs);
    if (this.#trace.includes(status)) {
      this.#trace.record({ requestId: findRequestId(bytes), status, durationMs }, Date.now());
    }
    this.#end(toOutcome(status));
  }

  /** The front proxy answers itself, and closes the connection. */
  refuse(refusal: Refusal): void {
    this.#metrics.countRefusal(refusal.reason);
    if (!this.#isWaiting) this.#handler = "front_proxy";
    this.#end(toOutcome(getRefusalStatus(refusal)));
  }

  /** The visitor has left. */
  leave(): void {
    if (this.#isWaiting) this.#end("left");
  }

  #end(outcome: Outcome): void {
    this.#isWaiting = false;
    this.#metrics.countRequest(this.#handler, outcome);
  }
}

/** @returns `interim` when the bytes end before the head of the final response (RFC 9110 §15.2). */
function readFinalStatus(bytes: Uint8Array): number | "interim" {
  let rest = bytes;
  for (;;) {
    const status = readStatus(rest);
    if (status < 100 || status >= 200 || status === SWITCHING_PROTOCOLS) return status;
    const end = toBuffer(rest).indexOf(HEAD_END);
    if (end < 0 || end + HEAD_END.length === rest.length) return "interim";
    rest = rest.subarray(end + HEAD_END.length);
  }
}

/** @returns 0 when the bytes don't begin with a status line. */
function readStatus(bytes: Uint8Array): number {
  let status = 0;
  for (let at = STATUS_START; at < STATUS_END; at++) {
    const digit = (bytes[at] ?? 0) - ZERO;
    if (digit < 0 || digit > 9) return 0;
    status = status * 10 + digit;
  }
  return status;
}

/** The id that the Worker has given to the request. Empty when the head does not contain it whole. */
function findRequestId({ buffer, byteOffset, length }: Uint8Array): string {
  const bytes = Buffer.from(buffer, byteOffset, Math.min(length, TRACED_HEAD_MAX_BYTES));
  const end = bytes.indexOf(HEAD_END);
  const head = bytes.toString("latin1", 0, end < 0 ? bytes.length : end + 2);
  return REQUEST_ID_FIELD.exec(head)?.[1] ?? "";
}

const TRACED_HEAD_MAX_BYTES = 16 * 1024;
const REQUEST_ID_FIELD = new RegExp(`\\r\\n${REQUEST_ID_HEADER}:[\\t ]*([\\w-]{1,64})\\r\\n`, "i");

const BY_CLASS: readonly Outcome[] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

function toOutcome(status: number): Outcome {
  return BY_CLASS[Math.floor(status / 100) - 1] ?? "unknown";
}
