/** Counts the requests of one connection, one at a time: the next one is forwarded when the response has ended. */
import { REQUEST_ID_HEADER } from "../../../protocol/errors.ts";
import type { RequestTrace } from "../../../shared/tracing/request-trace.ts";
import type { ResponseHead } from "../http1/response-reader.ts";
import { getRefusalStatus, type Refusal } from "../refusals.ts";
import type { FrontProxyMetrics, Handler, Outcome } from "./front-proxy-metrics.ts";

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
    this.#handler = handler;
    this.#startedAtMs = performance.now();
    this.#isWaiting = true;
  }

  /** The head of the response has arrived. */
  respond({ status, text }: ResponseHead): void {
    const durationMs = performance.now() - this.#startedAtMs;
    this.#metrics.countLatency(this.#handler, durationMs);
    if (this.#trace.includes(status)) {
      this.#trace.record({ requestId: findRequestId(text), status, durationMs }, Date.now());
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

const REQUEST_ID_FIELD = new RegExp(`\\r\\n${REQUEST_ID_HEADER}:[\\t ]*([\\w-]{1,64})\\r\\n`, "i");

/** The id that the Worker has given to the request. Empty when there is none. */
function findRequestId(head: string): string {
  return REQUEST_ID_FIELD.exec(head)?.[1] ?? "";
}

const BY_CLASS: readonly Outcome[] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

function toOutcome(status: number): Outcome {
  return BY_CLASS[Math.floor(status / 100) - 1]!;
}
