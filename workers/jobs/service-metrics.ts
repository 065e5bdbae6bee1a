/** The Worker's part of the metrics that the operator of a self-hosted server scrapes. */
import { toSingleValue, type MetricFamily } from "../../shared/metrics/exposition.ts";
import type { Env } from "../env.ts";
import { findServiceTotals } from "../store/metrics/service-totals.ts";
import { createDatabase } from "./outbox.ts";

export async function collectServiceMetrics(env: Env): Promise<MetricFamily[]> {
  const totals = await findServiceTotals(createDatabase(env));
  return [
    toSingleValue(
      "gauge",
      "underpass_server_tunnels",
      "Tunnels that are neither deleted nor expired.",
      totals.tunnels,
    ),
    toSingleValue(
      "gauge",
      "underpass_server_tunnels_active",
      "Tunnels that are active.",
      totals.activeTunnels,
    ),
    toSingleValue(
      "gauge",
      "underpass_server_agents_connected",
      "Agents that serve a tunnel, as their rows say: some seconds old.",
      totals.connectedAgents,
    ),
    {
      name: "underpass_server_outbox_messages",
      help: "Messages of committed changes that wait for their delivery: mails, and all others.",
      type: "gauge",
      samples: [
        { labels: { kind: "mail" }, value: totals.waitingMails },
        { labels: { kind: "other" }, value: totals.waitingOthers },
      ],
    },
    {
      name: "underpass_server_outbox_oldest_age_seconds",
      help: "Age of the oldest message that waits for its delivery; 0 when none waits.",
      type: "gauge",
      samples: [
        { labels: { kind: "mail" }, value: totals.oldestMailSeconds },
        { labels: { kind: "other" }, value: totals.oldestOtherSeconds },
      ],
    },
    toSingleValue(
      "gauge",
      "underpass_server_outbox_parked_messages",
      "Messages that could not be delivered for a week and are not retried.",
      totals.parked,
    ),
  ];
}
