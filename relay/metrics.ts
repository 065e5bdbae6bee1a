/** The relay's metrics, for the operator. */
import type { MetricFamily, MetricSample } from "../shared/metrics/exposition.ts";

/** Why a datagram was dropped. */
const DROP_REASONS = [
  /** Its source port is 0, so nothing can be sent back. */
  "no_source_port",
  /** From a client: not WireGuard, or of a wrong length. */
  "not_wireguard",
  /** A first handshake message for another server key. */
  "wrong_mac1",
  "initiation_rate",
  "new_flow_rate",
  "flow_limit",
  /** A handshake response or cookie from an address without a flow, or for an index that the server never sent. */
  "unknown_peer",
  "unknown_index",
  /** Data of peers that have not been shown to have a session. */
  "unproven_rate",
  /** Beyond the ticket's Mbit/s. */
  "rate",
  /** To a peer that has not shown that it receives our responses: it is never sent more bytes than it sent. */
  "unconfirmed_peer",
  /** No agent is bound, or too much is queued on its WebSocket. */
  "agent_backlog",
  "send_queue",
  "too_large",
  /** From an agent: a flow that is unknown or belongs to another association. */
  "unknown_flow",
  /** From another address than the association is bound to. */
  "unbound_address",
  "bad_bind",
  "replayed_bind",
  "malformed",
] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** Totals of visitors' connections to TCP tunnels. `bytesIn` came from visitors. */
export interface TcpTotals {
  connections: number;
  bytesIn: number;
  bytesOut: number;
}

interface Gauges {
  isLinked: boolean;
  associations: { network: number; tunnel: number };
  flows: number;
  ports: number;
  openConnections: number;
  tcp: TcpTotals;
}

export class Metrics {
  readonly dropped = Object.fromEntries(DROP_REASONS.map((reason) => [reason, 0])) as Record<
    DropReason,
    number
  >;
  /** WireGuard datagrams from remote peers to agents, and back. */
  datagramsIn = 0;
  datagramsOut = 0;
  bytesIn = 0;
  bytesOut = 0;
  /** As last sent by the API; null until then. */
  reservedPorts: { udp: number; tcp: number } | null = null;
  /** Number of refused agents by the name of the close code. */
  readonly refused = new Map<string, number>();

  countDrop(reason: DropReason): void {
    this.dropped[reason] += 1;
  }

  countRefusal(name: string): void {
    this.refused.set(name, (this.refused.get(name) ?? 0) + 1);
  }

  toFamilies(gauges: Gauges): MetricFamily[] {
    const families: MetricFamily[] = [];
    const add = (
      name: string,
      type: "gauge" | "counter",
      help: string,
      ...samples: MetricSample[]
    ) => {
      families.push({ name, type, help, samples });
    };
    add("underpass_relay_linked", "gauge", "Whether the relay is connected to the API.", {
      value: Number(gauges.isLinked),
    });
    add(
      "underpass_relay_associations",
      "gauge",
      "Agents that serve a port.",
      { labels: { kind: "network" }, value: gauges.associations.network },
      { labels: { kind: "tunnel" }, value: gauges.associations.tunnel },
    );
    add(
      "underpass_relay_ports",
      "gauge",
      "Ports that the relay hands out, for each of UDP and TCP.",
      {
        value: gauges.ports,
      },
    );
    if (this.reservedPorts) {
      const { udp, tcp } = this.reservedPorts;
      add(
        "underpass_relay_ports_reserved",
        "gauge",
        "Ports that belong to a network (UDP) or a tunnel (TCP), served or not.",
        { labels: { protocol: "udp" }, value: udp },
        { labels: { protocol: "tcp" }, value: tcp },
      );
    }
    add("underpass_relay_flows", "gauge", "Remote WireGuard peers.", { value: gauges.flows });
    add("underpass_relay_connections", "gauge", "Open TCP connections of visitors.", {
      value: gauges.openConnections,
    });
    add(
      "underpass_relay_datagrams_total",
      "counter",
      "WireGuard datagrams that were passed on.",
      ...byDirection(this.datagramsIn, this.datagramsOut),
    );
    add(
      "underpass_relay_datagram_bytes_total",
      "counter",
      "Bytes of these datagrams, without headers.",
      ...byDirection(this.bytesIn, this.bytesOut),
    );
    add(
      "underpass_relay_datagrams_dropped_total",
      "counter",
      "Datagrams that were not passed on.",
      ...DROP_REASONS.map((reason) => ({ labels: { reason }, value: this.dropped[reason] })),
    );
    add("underpass_relay_tcp_connections_total", "counter", "TCP connections of visitors.", {
      value: gauges.tcp.connections,
    });
    add(
      "underpass_relay_tcp_bytes_total",
      "counter",
      "Bytes of TCP tunnels.",
      ...byDirection(gauges.tcp.bytesIn, gauges.tcp.bytesOut),
    );
    add(
      "underpass_relay_agents_refused_total",
      "counter",
      "Control connections that were refused.",
      ...[...this.refused].map(([reason, value]) => ({ labels: { reason }, value })),
    );
    add("process_resident_memory_bytes", "gauge", "Resident memory.", {
      value: process.memoryUsage.rss(),
    });
    const { user, system } = process.cpuUsage();
    add("process_cpu_seconds_total", "counter", "CPU time.", { value: (user + system) / 1e6 });
    return families;
  }
}

function byDirection(toAgents: number, fromAgents: number): MetricSample[] {
  return [
    { labels: { direction: "to_agents" }, value: toAgents },
    { labels: { direction: "from_agents" }, value: fromAgents },
  ];
}
