/** Which parts a scrape of this server asks. */
import type { Gateway } from "../gateway/gateway.ts";
import { watchEventLoopDelay } from "../processes/event-loop-delay.ts";
import type { DiskWatch } from "../disk-space.ts";
import type { SupervisedProcess } from "../processes/child.ts";
import type { LocalRelay } from "../relay.ts";
import { requestText } from "../internal-requests.ts";
import { toSingleValue } from "../../shared/metrics/exposition.ts";
import type { ScheduledJobs } from "../workerd/scheduled-jobs.ts";
import type { Workerd } from "../workerd/workerd.ts";
import { readDatabaseMetrics } from "./database-metrics.ts";
import { collectOwnMetrics, SERVER_PROCESS, type RunningChild } from "./own-metrics.ts";
import { parseFamilies, type MetricsPart } from "./parts.ts";

const FRONT_PROXY_MAX_MS = 2_000;

export interface ServerParts {
  databaseUrl: string;
  gateway: Gateway;
  /** undefined for a database of the operator's own. */
  postgres: SupervisedProcess | undefined;
  disk: DiskWatch;
  workerd: Workerd;
  jobs: ScheduledJobs;
  frontProxy: SupervisedProcess;
  /** undefined: none is started with the server. */
  relay: LocalRelay | undefined;
}

export function listMetricsParts(server: ServerParts): MetricsPart[] {
  const { databaseUrl, gateway, disk, workerd, jobs, relay } = server;
  const children = listChildren(server);
  const readEventLoopDelay = watchEventLoopDelay(SERVER_PROCESS);
  const parts: MetricsPart[] = [
    {
      name: SERVER_PROCESS,
      read: async () => [
        ...(await collectOwnMetrics(children, gateway.pools)),
        ...readEventLoopDelay(),
        ...(await disk.collectMetrics()),
        toSingleValue(
          "counter",
          "underpass_server_jobs_failed_total",
          "Scheduled jobs that have failed; each runs once a minute.",
          jobs.failed,
        ),
      ],
    },
    {
      name: "front_proxy",
      read: async () =>
        parseFamilies(
          await requestText(
            { socketPath: workerd.frontControlSocket, method: "GET", path: "/metrics" },
            FRONT_PROXY_MAX_MS,
          ),
        ),
    },
    { name: "worker", read: async () => parseFamilies(await workerd.requestMetrics()) },
    { name: "postgres", read: () => readDatabaseMetrics(databaseUrl) },
  ];
  if (relay) {
    parts.push({
      name: "relay",
      read: async () =>
        // Its process_* families describe another process than the one that is scraped.
        parseFamilies(await relay.requestMetrics()).filter(({ name }) =>
          name.startsWith("underpass_relay_"),
        ),
    });
  }
  return parts;
}

function listChildren({ postgres, workerd, frontProxy, relay }: ServerParts): RunningChild[] {
  const supervised = (name: string, child: SupervisedProcess | LocalRelay): RunningChild => ({
    name,
    getPid: () => child.pid,
    countRestarts: () => child.restarts,
    countHangs: () => child.hangs,
  });
  return [
    supervised("front_proxy", frontProxy),
    supervised("workerd", workerd.child),
    ...(postgres ? [supervised("postgres", postgres)] : []),
    ...(relay ? [supervised("relay", relay)] : []),
  ];
}
