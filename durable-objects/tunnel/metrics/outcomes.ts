/**
 * Counts visitors' requests since the tunnel was created: by the class of the response's status, by the reason of
 * each refusal, and by the local server's latency. The counters are in memory; `MetricsReporter` saves them.
 */
import type { ErrorCode } from "../../../protocol/errors.ts";
import { LATENCY_BOUNDS_MS } from "../../../protocol/limits.ts";
import { findBucket } from "../../../shared/metrics/histogram.ts";
import { getRefusalCode } from "../../../access/refusal.ts";

/** Totals by name: `requests:2xx`, `refusals:maintenance`, `latency:250`, `latency:sum`, `bytes:in`. */
export type Counters = Record<string, number>;

/**
 * By the first digit of the status. `left`: the visitor disconnected before the response. `tcp`: a connection to
 * a TCP tunnel, which has no status.
 */
export const OUTCOMES = ["left", "1xx", "2xx", "3xx", "4xx", "5xx", "tcp"] as const;
const LEFT = OUTCOMES.indexOf("left");
const TCP = OUTCOMES.indexOf("tcp");

export class Outcomes {
  /** Requests of every outcome. */
  requests = 0;
  #byOutcome: number[] = [];
  readonly #byRefusal = new Map<string, number>();
  /** Not cumulative: each response is counted in one step. */
  #latency: number[] = [];
  #latencySumMs = 0;

  constructor(saved: Counters = {}) {
    this.#load(saved);
  }

  /** @param latencyMs from the request's arrival to the response's head. */
  count(request: Pick<Request, "signal">, response: Response, latencyMs: number): void {
    const refusal = getRefusalCode(response);
    // The request is for another tunnel, which the edge finds, or for none.
    if (refusal === "tunnel_not_found") return;
    this.requests += 1;
    if (refusal === null) this.#countResponse(response.status, latencyMs);
    else if (refusal === "agent_offline" && request.signal.aborted) this.#byOutcome[LEFT]! += 1;
    else this.#countRefusal(refusal, response.status);
  }

  countConnections(count: number): void {
    this.requests += count;
    this.#byOutcome[TCP]! += count;
  }

  /** Adds what another object of the tunnel has counted. */
  add(counters: Counters): void {
    const sums = this.totals();
    for (const [name, count] of Object.entries(counters)) sums[name] = (sums[name] ?? 0) + count;
    this.#load(sums);
  }

  totals(): Counters {
    const totals: Counters = { "latency:sum": this.#latencySumMs };
    OUTCOMES.forEach((outcome, at) => (totals[`requests:${outcome}`] = this.#byOutcome[at]!));
    this.#latency.forEach((count, step) => (totals[toLatencyKey(step)] = count));
    for (const [code, count] of this.#byRefusal) totals[`refusals:${code}`] = count;
    return Object.fromEntries(Object.entries(totals).filter(([, count]) => count > 0));
  }

  #load(saved: Counters): void {
    this.#byOutcome = OUTCOMES.map((outcome) => saved[`requests:${outcome}`] ?? 0);
    this.#latency = [...LATENCY_BOUNDS_MS, Infinity].map(
      (_, step) => saved[toLatencyKey(step)] ?? 0,
    );
    this.#latencySumMs = saved["latency:sum"] ?? 0;
    for (const [key, count] of Object.entries(saved)) {
      if (key.startsWith("refusals:")) this.#byRefusal.set(key.slice("refusals:".length), count);
    }
    this.requests = this.#byOutcome.reduce((sum, count) => sum + count, 0);
  }

  #countResponse(status: number, latencyMs: number): void {
    this.#byOutcome[Math.floor(status / 100)]! += 1;
    this.#latency[findBucket(LATENCY_BOUNDS_MS, latencyMs)]! += 1;
    // The clock may have been set back in between; a counter must not decrease.
    this.#latencySumMs += Math.max(0, latencyMs);
  }

  #countRefusal(code: ErrorCode, status: number): void {
    this.#byOutcome[Math.floor(status / 100)]! += 1;
    this.#byRefusal.set(code, (this.#byRefusal.get(code) ?? 0) + 1);
  }
}

function toLatencyKey(step: number): string {
  return `latency:${LATENCY_BOUNDS_MS[step] ?? "more"}`;
}
