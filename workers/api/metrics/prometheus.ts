/**
 * The metrics of one organization in the text format of Prometheus (exposition format 0.0.4). The totals of an
 * organization include all tunnels that it ever had, so that counters never decrease. Single tunnels have separate
 * families, whose samples disappear with the tunnel.
 */
import { OUTCOMES, type Counters } from "../../../durable-objects/tunnel/metrics/outcomes.ts";
import { LATENCY_BOUNDS_MS } from "../../../protocol/limits.ts";
import {
  formatFamilies,
  toHistogramSamples,
  type MetricFamily,
  type MetricSample,
} from "../../../shared/metrics/exposition.ts";
import type { CountedTunnel, TunnelCounts } from "../../store/metrics/metrics.ts";

export interface MetricsSnapshot {
  tunnels: TunnelCounts;
  /** The number of connected agents. */
  agents: number;
  counters: Counters;
  busiest: CountedTunnel[];
}

export function formatExposition(scraped: MetricsSnapshot): string {
  return formatFamilies([...toFamilies(scraped), ...toTunnelFamilies(scraped.busiest)]);
}

function toFamilies({ tunnels, agents, counters }: MetricsSnapshot): MetricFamily[] {
  return [
    {
      name: "underpass_tunnels",
      help: "Tunnels of the organization.",
      type: "gauge",
      samples: [{ value: tunnels.total }],
    },
    {
      name: "underpass_tunnels_active",
      help: "Tunnels of the organization that are active.",
      type: "gauge",
      samples: [{ value: tunnels.active }],
    },
    {
      name: "underpass_agents_connected",
      help: "Agents that serve a tunnel of the organization.",
      type: "gauge",
      samples: [{ value: agents }],
    },
    {
      name: "underpass_requests_total",
      help: "Visitors' requests by the class of the response status; left: the visitor disconnected before the response; tcp: a connection to a TCP tunnel.",
      type: "counter",
      samples: toOutcomeSamples(counters),
    },
    {
      name: "underpass_refusals_total",
      help: "Visitors' requests that the service answered with an error instead of the local server, by error.",
      type: "counter",
      samples: Object.entries(counters)
        .filter(([name]) => name.startsWith("refusals:"))
        .sort()
        .map(([name, value]) => ({ labels: { error: name.slice("refusals:".length) }, value })),
    },
    {
      name: "underpass_bytes_in_total",
      help: "Bytes of bodies and messages from visitors to local servers.",
      type: "counter",
      samples: [{ value: counters["bytes:in"] ?? 0 }],
    },
    {
      name: "underpass_bytes_out_total",
      help: "Bytes of bodies and messages from local servers to visitors.",
      type: "counter",
      samples: [{ value: counters["bytes:out"] ?? 0 }],
    },
    {
      name: "underpass_request_duration_seconds",
      help: "Time from the arrival of a request at its tunnel to the head of the response of the local server.",
      type: "histogram",
      samples: toLatencySamples(counters),
    },
  ];
}

function toTunnelFamilies(busiest: CountedTunnel[]): MetricFamily[] {
  const each = (samples: (counters: Counters, tunnel: CountedTunnel) => MetricSample[]) =>
    busiest.flatMap((tunnel) =>
      samples(tunnel.counters ?? {}, tunnel).map((sample) => ({
        ...sample,
        labels: { tunnel: tunnel.subdomain, tunnel_id: tunnel.id, ...sample.labels },
      })),
    );
  return [
    {
      name: "underpass_tunnel_agent_connected",
      help: "Whether an agent serves the tunnel.",
      type: "gauge",
      samples: each((_, { agentConnected }) => [{ value: agentConnected ? 1 : 0 }]),
    },
    {
      name: "underpass_tunnel_requests_total",
      help: "Requests of the tunnel's visitors by the class of the response status.",
      type: "counter",
      samples: each(toOutcomeSamples),
    },
    {
      name: "underpass_tunnel_bytes_in_total",
      help: "Bytes of bodies and messages from the tunnel's visitors.",
      type: "counter",
      samples: each((counters) => [{ value: counters["bytes:in"] ?? 0 }]),
    },
    {
      name: "underpass_tunnel_bytes_out_total",
      help: "Bytes of bodies and messages to the tunnel's visitors.",
      type: "counter",
      samples: each((counters) => [{ value: counters["bytes:out"] ?? 0 }]),
    },
  ];
}

function toOutcomeSamples(counters: Counters): MetricSample[] {
  return OUTCOMES.map((code) => ({ labels: { code }, value: counters[`requests:${code}`] ?? 0 }));
}

function toLatencySamples(counters: Counters): MetricSample[] {
  const counts = [...LATENCY_BOUNDS_MS, "more"].map((bound) => counters[`latency:${bound}`] ?? 0);
  return toHistogramSamples(LATENCY_BOUNDS_MS, counts, counters["latency:sum"] ?? 0);
}
