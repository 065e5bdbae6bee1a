/** Counts of captured requests by status, error, latency and path. Two can be added, so that tunnels can be summed. */
import { STATUS_BY_CODE, type ErrorCode } from "../../../../protocol/errors.ts";
import { LATENCY_BOUNDS_MS } from "../../../../protocol/limits.ts";
import { findBucket } from "../../../../shared/metrics/histogram.ts";
import type { StatusClass } from "../../../../protocol/schemas/metrics.ts";
import { cutPath, type CaptureRecord } from "../record.ts";

/** How many paths of a tunnel are returned: those with the most requests. */
export const BREAKDOWN_MAX_PATHS = 20;

/** The requests of one path, or of those that begin alike. */
export interface PathCounts {
  /** As lists show it. */
  path: string;
  requests: number;
  /** Answered with a status of 500 or more. */
  failed: number;
  /** Answered by the local server, and the sum of their latencies. */
  answered: number;
  latencySumMs: number;
}

export interface CaptureBreakdown {
  requests: number;
  /** false: there are older captures in the window that were not counted. */
  isComplete: boolean;
  statuses: Partial<Record<StatusClass, number>>;
  errors: Partial<Record<ErrorCode, number>>;
  /** Responses of the local server by `LATENCY_BOUNDS_MS`; the last step is for those above the last bound. */
  latency: number[];
  /** The busiest first. */
  paths: PathCounts[];
}

type CountedRecord = Pick<CaptureRecord, "path" | "status" | "latencyMs" | "error">;

export class BreakdownCounter {
  #requests = 0;
  readonly #statuses: CaptureBreakdown["statuses"] = {};
  readonly #errors: CaptureBreakdown["errors"] = {};
  readonly #latency = [...LATENCY_BOUNDS_MS, Infinity].map(() => 0);
  readonly #paths = new Map<string, PathCounts>();

  get requests(): number {
    return this.#requests;
  }

  count({ path, status, latencyMs, error }: CountedRecord): void {
    this.#requests += 1;
    increase(this.#statuses, getStatusClass(status));
    if (error !== null) increase(this.#errors, error);
    const counts = this.#getPath(cutPath(path));
    counts.requests += 1;
    if (status !== null && status >= 500) counts.failed += 1;
    // With another status, the local server's response has begun, and then broken off.
    const isOwnAnswer = error !== null && status === STATUS_BY_CODE[error];
    if (isOwnAnswer || latencyMs === null) return;
    counts.answered += 1;
    counts.latencySumMs += latencyMs;
    this.#latency[findBucket(LATENCY_BOUNDS_MS, latencyMs)]! += 1;
  }

  finish({ isComplete }: Pick<CaptureBreakdown, "isComplete">): CaptureBreakdown {
    const paths = [...this.#paths.values()].sort(byRequests).slice(0, BREAKDOWN_MAX_PATHS);
    return {
      requests: this.#requests,
      isComplete,
      statuses: this.#statuses,
      errors: this.#errors,
      latency: this.#latency,
      paths,
    };
  }

  #getPath(path: string): PathCounts {
    let counts = this.#paths.get(path);
    if (!counts) {
      counts = { path, requests: 0, failed: 0, answered: 0, latencySumMs: 0 };
      this.#paths.set(path, counts);
    }
    return counts;
  }
}

/** Sorts the busiest path first. */
export function byRequests(one: PathCounts, other: PathCounts): number {
  return other.requests - one.requests || (one.path < other.path ? -1 : 1);
}

function getStatusClass(status: number | null): StatusClass {
  return status === null ? "none" : (`${Math.floor(status / 100)}xx` as StatusClass);
}

function increase<Name extends string>(counts: Partial<Record<Name, number>>, name: Name): void {
  counts[name] = (counts[name] ?? 0) + 1;
}
