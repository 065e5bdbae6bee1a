/** The counters of the front proxy, in fixed arrays: a request costs a few additions and no allocation. */
import { LATENCY_BOUNDS_MS } from "../../../protocol/limits.ts";
import { findBucket } from "../../../shared/metrics/histogram.ts";
import {
  toHistogramSamples,
  toSingleValue,
  type MetricFamily,
} from "../../../shared/metrics/exposition.ts";
import type { ConnectionKind, OpenConnection } from "./open-connection.ts";
import { REFUSAL_REASONS, type RefusalReason } from "../refusals.ts";

/** What answers a request. Requests that the front proxy refuses before their head is complete reach no other handler. */
const HANDLERS = ["tunnel", "api", "relay", "front_proxy"] as const;
export type Handler = (typeof HANDLERS)[number];
/** What a request is forwarded to. */
export type Destination = Exclude<Handler, "front_proxy">;

/** The class of the response's status. left: the visitor disconnected before the response. */
const OUTCOMES = ["1xx", "2xx", "3xx", "4xx", "5xx", "left"] as const;
export type Outcome = (typeof OUTCOMES)[number];

const CONNECTION_REFUSALS = ["total", "source"] as const;
export type ConnectionRefusal = (typeof CONNECTION_REFUSALS)[number];

interface HandlerCounters {
  outcomes: Record<Outcome, number>;
  /** By bucket; the last one counts everything slower. */
  latencies: number[];
  latencySumMs: number;
}

export class FrontProxyMetrics {
  readonly #handlers = Object.fromEntries(
    HANDLERS.map((handler) => [handler, createHandlerCounters()]),
  ) as Record<Handler, HandlerCounters>;
  readonly #refusals = createCounters(REFUSAL_REASONS);
  readonly #refusedConnections = createCounters(CONNECTION_REFUSALS);
  #accepted = 0;
  /** The bytes that closed connections have received and sent. */
  #bytesReceived = 0;
  #bytesSent = 0;

  countRequest(handler: Handler, outcome: Outcome): void {
    this.#handlers[handler].outcomes[outcome] += 1;
  }

  /** @param durationMs from the complete head of the request to the first byte of its response. */
  countLatency(handler: Handler, durationMs: number): void {
    const counters = this.#handlers[handler];
    counters.latencies[findBucket(LATENCY_BOUNDS_MS, durationMs)]! += 1;
    counters.latencySumMs += durationMs;
  }

  countRefusal(reason: RefusalReason): void {
    this.#refusals[reason] += 1;
  }

  countAcceptedConnection(): void {
    this.#accepted += 1;
  }

  countRefusedConnection(reason: ConnectionRefusal): void {
    this.#refusedConnections[reason] += 1;
  }

  countClosedConnection({ bytesReceived, bytesSent }: OpenConnection): void {
    this.#bytesReceived += bytesReceived;
    this.#bytesSent += bytesSent;
  }

  /**
   * @param limit of open connections.
   * @param waiting requests that wait for their turn.
   */
  toFamilies(
    open: Iterable<{ metrics: OpenConnection }>,
    limit: number,
    waiting: number,
  ): MetricFamily[] {
    const kinds: Record<ConnectionKind, number> = { http: 0, visitor_websocket: 0, program: 0 };
    let received = this.#bytesReceived;
    let sent = this.#bytesSent;
    for (const { metrics } of open) {
      kinds[metrics.kind] += 1;
      received += metrics.bytesReceived;
      sent += metrics.bytesSent;
    }
    return [
      {
        name: "underpass_server_requests_total",
        help: "Requests by what answered them and the class of the response status; left: the visitor disconnected before the response.",
        type: "counter",
        samples: HANDLERS.flatMap((handler) =>
          OUTCOMES.map((code) => ({
            labels: { handler, code },
            value: this.#handlers[handler].outcomes[code],
          })),
        ),
      },
      {
        name: "underpass_server_request_duration_seconds",
        help: "Time from the complete head of a request to the first byte of its response, as the front proxy sees it.",
        type: "histogram",
        samples: (["tunnel", "api", "relay"] as const).flatMap((handler) => {
          const { latencies, latencySumMs } = this.#handlers[handler];
          return toHistogramSamples(LATENCY_BOUNDS_MS, latencies, latencySumMs, { handler });
        }),
      },
      {
        name: "underpass_server_refusals_total",
        help: "Requests that the front proxy itself refused, by reason.",
        type: "counter",
        samples: toReasonSamples(this.#refusals),
      },
      toSingleValue(
        "gauge",
        "underpass_server_requests_waiting",
        "Requests that wait for their turn at workerd, because it is busy.",
        waiting,
      ),
      toSingleValue(
        "counter",
        "underpass_server_receive_bytes_total",
        "Bytes received on connections to the server's port.",
        received,
      ),
      toSingleValue(
        "counter",
        "underpass_server_transmit_bytes_total",
        "Bytes sent on connections to the server's port.",
        sent,
      ),
      {
        name: "underpass_server_connections",
        help: "Open connections: http, WebSockets of visitors, and those of agents and other programs.",
        type: "gauge",
        samples: Object.entries(kinds).map(([kind, value]) => ({ labels: { kind }, value })),
      },
      toSingleValue(
        "gauge",
        "underpass_server_connections_limit",
        "How many connections may be open (MAX_CONNECTIONS).",
        limit,
      ),
      toSingleValue(
        "counter",
        "underpass_server_connections_accepted_total",
        "Connections that were accepted.",
        this.#accepted,
      ),
      {
        name: "underpass_server_connections_refused_total",
        help: "Connections that were refused because too many were open: in total, or of one source.",
        type: "counter",
        samples: toReasonSamples(this.#refusedConnections),
      },
    ];
  }
}

function createCounters<Name extends string>(names: readonly Name[]): Record<Name, number> {
  return Object.fromEntries(names.map((name) => [name, 0])) as Record<Name, number>;
}

function createHandlerCounters(): HandlerCounters {
  return {
    outcomes: createCounters(OUTCOMES),
    latencies: Array<number>(LATENCY_BOUNDS_MS.length + 1).fill(0),
    latencySumMs: 0,
  };
}

function toReasonSamples(counters: Record<string, number>) {
  return Object.entries(counters).map(([reason, value]) => ({ labels: { reason }, value }));
}
