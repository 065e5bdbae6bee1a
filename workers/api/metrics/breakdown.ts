/** Sums what the objects of several tunnels counted among their captured requests. */
import {
  BREAKDOWN_MAX_PATHS,
  byRequests,
  type CaptureBreakdown,
} from "../../../durable-objects/tunnel/captures/reading/breakdown.ts";
import type { ErrorCode } from "../../../protocol/errors.ts";
import { LATENCY_BOUNDS_MS } from "../../../protocol/limits.ts";
import { StatusClass, type Breakdown } from "../../../protocol/schemas/metrics.ts";
import type { TunnelTraffic } from "../../store/metrics/metrics.ts";

/** The counts of one tunnel's captured requests. */
export interface TunnelBreakdown {
  tunnelId: string;
  captured: CaptureBreakdown;
}

export function buildBreakdown(traffic: TunnelTraffic[], counted: TunnelBreakdown[]): Breakdown {
  const captured = counted.map((one) => one.captured);
  const sumUp = (count: (one: CaptureBreakdown) => number) =>
    captured.reduce((sum, one) => sum + count(one), 0);
  const errors = [...new Set(captured.flatMap((one) => Object.keys(one.errors) as ErrorCode[]))];
  return {
    tunnels: traffic,
    captured_requests: sumUp(({ requests }) => requests),
    is_complete: captured.every(({ isComplete }) => isComplete),
    statuses: StatusClass.options.map((status) => ({
      status,
      requests: sumUp(({ statuses }) => statuses[status] ?? 0),
    })),
    errors: errors
      .map((error) => ({ error, requests: sumUp((one) => one.errors[error] ?? 0) }))
      .sort((one, other) => other.requests - one.requests),
    latency: [...LATENCY_BOUNDS_MS, null].map((bound, step) => ({
      up_to_ms: bound,
      requests: sumUp(({ latency }) => latency[step] ?? 0),
    })),
    paths: listPaths(counted),
  };
}

/** A path belongs to one tunnel, so the busiest paths of all tunnels are among the busiest of each. */
function listPaths(counted: TunnelBreakdown[]): Breakdown["paths"] {
  return counted
    .flatMap(({ tunnelId, captured }) => captured.paths.map((path) => ({ tunnelId, ...path })))
    .sort(byRequests)
    .slice(0, BREAKDOWN_MAX_PATHS)
    .map(({ tunnelId, path, requests, failed, answered, latencySumMs }) => ({
      tunnel_id: tunnelId,
      path,
      requests,
      failed_requests: failed,
      average_latency_ms: answered === 0 ? null : Math.round(latencySumMs / answered),
    }));
}
