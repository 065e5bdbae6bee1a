/** The metrics that the server's first process knows itself, without asking another one. */
import { SERVICE_VERSION } from "../../protocol/version.ts";
import type { MetricFamily } from "../../shared/metrics/exposition.ts";
import type { Gateway } from "../gateway/gateway.ts";
import {
  readUsageWithChildren,
  readOwnUsage,
  toUsageFamilies,
  type ProcessUsage,
} from "./process-usage.ts";

/** A process that the server has started. */
export interface RunningChild {
  /** The value of the label `process`. */
  name: string;
  /** undefined while it does not run. */
  getPid(): number | undefined;
  countRestarts(): number;
  /** undefined when nothing notices that it hangs. */
  countHangs(): number | undefined;
}

/** The name of the first process, which contains the database gateway, in labels. */
export const SERVER_PROCESS = "server";

const startedAtSeconds = Date.now() / 1000 - process.uptime();

export async function collectOwnMetrics(
  children: readonly RunningChild[],
  pools: Gateway["pools"],
): Promise<MetricFamily[]> {
  const [own, ...others] = await Promise.all([
    readOwnUsage(),
    ...children.map(async (child) => {
      const pid = child.getPid();
      return pid === undefined ? undefined : readUsageWithChildren(pid);
    }),
  ]);
  const usages = children.map(({ name }, at): [string, ProcessUsage | undefined] => [
    name,
    others[at],
  ]);
  return [
    {
      name: "underpass_server_build_info",
      help: "The version of the server; the value is always 1.",
      type: "gauge",
      samples: [{ labels: { version: SERVICE_VERSION, node: process.version }, value: 1 }],
    },
    ...toUsageFamilies([[SERVER_PROCESS, own], ...usages]),
    ...toProcessFamilies(own),
    {
      name: "underpass_server_restarts_total",
      help: "How many times a process has exited by itself and was started again.",
      type: "counter",
      samples: children.map((child) => ({
        labels: { process: child.name },
        value: child.countRestarts(),
      })),
    },
    {
      name: "underpass_server_hangs_total",
      help: "How many times a process has not answered for a minute.",
      type: "counter",
      samples: children.flatMap((child) => {
        const value = child.countHangs();
        return value === undefined ? [] : [{ labels: { process: child.name }, value }];
      }),
    },
    ...toPoolFamilies(pools),
  ];
}

/** The names that Prometheus' client libraries use for the process that is scraped. */
function toProcessFamilies(usage: ProcessUsage): MetricFamily[] {
  const { residentBytes, cpuSeconds, openDescriptors, maxDescriptors } = usage;
  const values: [MetricFamily["type"], string, string, number | undefined][] = [
    [
      "gauge",
      "process_start_time_seconds",
      "When the first process was started, in seconds since the epoch.",
      startedAtSeconds,
    ],
    [
      "gauge",
      "process_resident_memory_bytes",
      "Resident memory of the first process.",
      residentBytes,
    ],
    ["counter", "process_cpu_seconds_total", "CPU time of the first process.", cpuSeconds],
    ["gauge", "process_open_fds", "Open descriptors of the first process.", openDescriptors],
    [
      "gauge",
      "process_max_fds",
      "How many descriptors the first process may have open.",
      maxDescriptors,
    ],
  ];
  return values.flatMap(([type, name, help, value]) =>
    value === undefined ? [] : [{ name, help, type, samples: [{ value }] }],
  );
}

function toPoolFamilies(pools: Gateway["pools"]): MetricFamily[] {
  const each = Object.entries(pools).map(([pool, getUsage]) => ({ pool, ...getUsage() }));
  return [
    {
      name: "underpass_server_database_connections",
      help: "Connections of the gateway to PostgreSQL: pool queries for single queries, sessions for transactions.",
      type: "gauge",
      samples: each.flatMap(({ pool, used, idle }) => [
        { labels: { pool, state: "used" }, value: used },
        { labels: { pool, state: "idle" }, value: idle },
      ]),
    },
    {
      name: "underpass_server_database_connections_limit",
      help: "How many connections the pool may have.",
      type: "gauge",
      samples: each.map(({ pool, limit }) => ({ labels: { pool }, value: limit })),
    },
    {
      name: "underpass_server_database_waiting",
      help: "Queries or transactions that wait for a connection.",
      type: "gauge",
      samples: each.map(({ pool, waiting }) => ({ labels: { pool }, value: waiting })),
    },
  ];
}
