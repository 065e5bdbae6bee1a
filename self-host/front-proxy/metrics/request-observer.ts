/**
 * Counts the requests of one connection. It reads only the first bytes of a response, which a visitor waits for before it
 * sends the next request: where the response ends is not known here, and need not be.
 */
import type { Refusal } from "../refusals.ts";
import { getRefusalStatus } from "../refusals.ts";
import type { FrontProxyMetrics, Handler, Outcome } from "./front-proxy-metrics.ts";

const HEAD_END = "\r\n\r\n";
/** `HTTP/1.1 `, before the three digits of the status. */
const STATUS_START = 9;
const STATUS_END = 12;
const ZERO = 0x30;
const SWITCHING_PROTOCOLS = 101;

export class RequestObserver {
  readonly #metrics: FrontProxyMetrics;
  #handler: Handler = "front_proxy";
  #startedAtMs = 0;
  /** A request was forwarded, and its response has not begun. */
  #isWaiting = false;

  constructor(metrics: FrontProxyMetrics) {
    this.#metrics = metrics;
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
    this.#metrics.countLatency(this.#handler, performance.now() - this.#startedAtMs);
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
    const end = Buffer.from(rest.buffer, rest.byteOffset, rest.length).indexOf(HEAD_END);
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

const BY_CLASS: readonly Outcome[] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

function toOutcome(status: number): Outcome {
  return BY_CLASS[Math.floor(status / 100) - 1] ?? "unknown";
}
