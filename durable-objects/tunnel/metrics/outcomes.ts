/**
 * What became of visitors' requests since the tunnel was made: by the class of the answer's status, by the
 * reason of each refusal, and how long the local server took. Additions in memory, saved with a report.
 */
import type { ErrorCode } from "../../../protocol/errors.ts";
import { LATENCY_BOUNDS_MS } from "../../../protocol/limits.ts";
import { getRefusalCode } from "../../../access/refusal.ts";

/** Totals by name: `requests:2xx`, `refusals:maintenance`, `latency:250`, `latency:sum`, `bytes:in`. */
export type Counters = Record<string, number>;

/**
 * By the first digit of the status. `left`: the visitor was gone before there was one. `tcp`: a connection to a
 * TCP tunnel, which has none.
 */
export const OUTCOMES = ["left", "1xx", "2xx", "3xx", "4xx", "5xx", "tcp"] as const;
const TCP = OUTCOMES.indexOf("tcp");
/** The step of what took longer than the last bound. */
const OVERFLOW_STEP = LATENCY_BOUNDS_MS.length;

export class Outcomes {
  /** Of every kind. */
  requests = 0;
  readonly #byOutcome: number[];
  readonly #byRefusal = new Map<string, number>();
  /** Not cumulative: each answer is in one step. */
  readonly #latency: number[];
  #latencySumMs: number;

  constructor(saved: Counters = {}) {
    this.#byOutcome = OUTCOMES.map((outcome) => saved[`requests:${outcome}`] ?? 0);
    this.#latency = [...LATENCY_BOUNDS_MS, OVERFLOW_STEP].map((_, step) => saved[toLatencyKey(step)] ?? 0);
    this.#latencySumMs = saved["latency:sum"] ?? 0;
    for (const [key, count] of Object.entries(saved)) {
      if (key.startsWith("refusals:")) this.#byRefusal.set(key.slice("refusals:".length), count);
    }
    this.requests = this.#byOutcome.reduce((sum, count) => sum + count, 0);
  }

  /** @param tookMs from the request's arrival to the answer's head. */
  count(request: Pick<Request, "signal">, answer: Response, tookMs: number): void {
    const refusal = getRefusalCode(answer);
    // Not of this tunnel: the edge finds out whose, or answers by itself.
    if (refusal === "tunnel_not_found") return;
    this.requests += 1;
    if (refusal === null) this.#countAnswer(answer.status, tookMs);
    else if (refusal === "agent_offline" && request.signal.aborted) this.#byOutcome[0]! += 1;
    else this.#countRefusal(refusal, answer.status);
  }

  countConnections(count: number): void {
    this.requests += count;
    this.#byOutcome[TCP]! += count;
  }

  totals(): Counters {
    const totals: Counters = { "latency:sum": this.#latencySumMs };
    OUTCOMES.forEach((outcome, at) => (totals[`requests:${outcome}`] = this.#byOutcome[at]!));
    this.#latency.forEach((count, step) => (totals[toLatencyKey(step)] = count));
    for (const [code, count] of this.#byRefusal) totals[`refusals:${code}`] = count;
    return Object.fromEntries(Object.entries(totals).filter(([, count]) => count > 0));
  }

  #countAnswer(status: number, tookMs: number): void {
    this.#byOutcome[Math.floor(status / 100)]! += 1;
    let step = 0;
    while (step < OVERFLOW_STEP && tookMs > LATENCY_BOUNDS_MS[step]!) step += 1;
    this.#latency[step]! += 1;
    // The clock may have been set back meanwhile; a counter never is.
    this.#latencySumMs += Math.max(0, tookMs);
  }

  #countRefusal(code: ErrorCode, status: number): void {
    this.#byOutcome[Math.floor(status / 100)]! += 1;
    this.#byRefusal.set(code, (this.#byRefusal.get(code) ?? 0) + 1);
  }
}

function toLatencyKey(step: number): string {
  return `latency:${LATENCY_BOUNDS_MS[step] ?? "more"}`;
}
