/** Load on a part of the service, with the CPU time that it costs, and variants of the same tunnel under it. */
import type { LoadPlan, LoadResult } from "./load.ts";
import { runLoad, startCpuMeter } from "./processes.ts";
import type { Row } from "./report.ts";
import { CONNECTIONS, WARM_UP_SECONDS } from "./settings.ts";
import { formatPercent, medianBy, round } from "./statistics.ts";

export interface MeasuredLoad extends LoadResult {
  /** CPU time of each process for one request, in microseconds. */
  cpuMicros: number[];
}

/** @param pids the processes that work for the requests. */
export async function measureLoad(
  plan: Omit<LoadPlan, "warmUpSeconds">,
  pids: readonly number[],
): Promise<MeasuredLoad> {
  const readCpuMs = startCpuMeter(pids);
  const result = await runLoad({ ...plan, warmUpSeconds: WARM_UP_SECONDS });
  const requests = result.requestsPerSecond * (plan.seconds + WARM_UP_SECONDS);
  return { ...result, cpuMicros: readCpuMs().map((ms) => (ms * 1000) / requests) };
}

/**
 * Compares variants of a tunnel by the median of their rounds.
 *
 * @param rounds those of each variant, with workerd as the first process. The others are compared with the first variant.
 */
export function compareVariants(group: string, rounds: Map<string, MeasuredLoad[]>): Row[] {
  const medians = Array.from(rounds, ([variant, measured]) => ({
    variant,
    ...medianBy(measured, ({ requestsPerSecond }) => requestsPerSecond),
  }));
  const base = medians[0]!;
  return medians.map(({ variant, requestsPerSecond, p50, p99, errors, cpuMicros }) => ({
    group,
    variant,
    connections: CONNECTIONS,
    "req/s": Math.round(requestsPerSecond),
    [`to ${base.variant}`]: formatPercent(requestsPerSecond / base.requestsPerSecond),
    "p50 ms": round(p50, 2),
    "p99 ms": round(p99, 2),
    errors,
    "server µs/req": round(cpuMicros[0] ?? NaN),
  }));
}
