/**
 * Runs workerd with the production bundle. The server sends four kinds of requests to the Worker's `Control` entry
 * point, over a socket that only its owner can open: drain, run the scheduled job, report metrics, and learn that the disk is
 * almost full. Over another one it tells the isolate of the objects the same about the disk.
 */
import { rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { CronResult } from "../../protocol/self-host/cron-result.ts";
import { toDiskPath, type DiskShortage } from "../../protocol/self-host/disk-shortage.ts";
import { DRAIN_TIMEOUT_MS } from "../../protocol/limits.ts";
import { SupervisedProcess } from "../processes/child.ts";
import { PING_MAX_MS } from "../processes/watchdog.ts";
import type { DataDir } from "../data-dir.ts";
import { writePrivateFile } from "../files.ts";
import type { Log } from "../log.ts";
import { buildConfiguration } from "./configuration.ts";
import { toSourcePositions } from "./source-positions.ts";
import { probeHealth, requestStatus, requestText, sendRequest } from "../internal-requests.ts";
import { LogLimiter } from "../../shared/log.ts";
import { parseJson } from "../../shared/json.ts";
import { MINUTE_MS } from "../../shared/time.ts";

/** workerd keeps running while any socket is open, but after the drain there is nothing left to wait for. */
const WORKERD_STOP_MAX_MS = 3_000;

interface WorkerdOptions {
  dataDir: DataDir;
  /** A host name of the API. */
  apiHost: string;
  gatewayAddress: string;
  bindings: Record<string, string>;
  allowPrivateFetch: boolean;
  log: Log;
}

export interface Workerd {
  child: SupervisedProcess;
  /** The path of the socket that takes requests of visitors and of callers of the API. */
  publicSocket: string;
  /** The path of the socket that takes requests of callers of the API only. */
  apiSocket: string;
  /** The path of the socket whose answers say that workerd has read what was sent to it before. */
  probeSocket: string;
  /** The path for the socket on which the front proxy takes requests of the server and of the Worker. */
  frontControlSocket: string;
  /** The Worker's metrics of all tenants together, as JSON. */
  requestMetrics(): Promise<string>;
  /** Notifies the agents and waits for requests in flight. */
  drain(): Promise<void>;
  /** Runs each scheduled job once. @returns how many have failed. */
  runCron(): Promise<number>;
  /** For some seconds, objects store no more than they hold already, or nothing at all, and `/ready` reports it. */
  reportLowDisk(shortage: DiskShortage): Promise<void>;
}

/** Resolves when the Worker serves requests. */
export async function startWorkerd(options: WorkerdOptions): Promise<Workerd> {
  const { dataDir, apiHost, bindings, log } = options;
  const { socketsDir } = dataDir;
  const publicSocket = join(socketsDir, PUBLIC_SOCKET);
  const apiSocket = join(socketsDir, API_SOCKET);
  const controlSocket = join(socketsDir, CONTROL_SOCKET);
  const objectsControlSocket = join(socketsDir, OBJECTS_CONTROL_SOCKET);
  const probeSocket = join(socketsDir, PROBE_SOCKET);
  const frontControlSocket = join(socketsDir, FRONT_CONTROL_SOCKET);
  const configPath = dataDir.workerdConfig;
  await writePrivateFile(
    configPath,
    await buildConfiguration({
      ...options,
      publicAddress: `unix:${publicSocket}`,
      apiSocket,
      controlSocket,
      objectsControlSocket,
      probeSocket,
      frontControlSocket,
      bindingNames: Object.keys(bindings),
    }),
  );

  const child = new SupervisedProcess(
    {
      name: "workerd",
      command: createRequire(import.meta.url).resolve("workerd/bin/workerd"),
      args: ["serve", configPath],
      // Secrets are passed in the environment, because a file with them could be left behind.
      spawnOptions: { env: bindings },
      probe: () => probeHealth({ socketPath: publicSocket, apiHost }),
      // Its thread answers, and nothing else is needed: no code of a Worker, no database.
      ping: () =>
        requestStatus({ socketPath: probeSocket, method: "HEAD", path: "/ping" }, PING_MAX_MS),
      // A killed workerd leaves its sockets behind, and the next one could not bind to their paths.
      prepare: async () => {
        const sockets = [publicSocket, apiSocket, controlSocket, objectsControlSocket, probeSocket];
        for (const path of sockets) await rm(path, { force: true });
      },
      onSpawn: (pid) => dataDir.recordWorkerd(pid),
      onLine: createLineForwarder(log),
      stopSignal: "SIGTERM",
      stopMaxMs: WORKERD_STOP_MAX_MS,
      signalOnParentExit: "SIGKILL",
    },
    log,
  );
  await child.start();
  const control = (path: string, maxMs: number) =>
    sendRequest({ socketPath: controlSocket, method: "POST", path }, maxMs);
  return {
    child,
    publicSocket,
    apiSocket,
    probeSocket,
    frontControlSocket,
    requestMetrics: () =>
      requestText({ socketPath: controlSocket, method: "GET", path: "/metrics" }, METRICS_MAX_MS),
    drain: () => control("/drain", DRAIN_TIMEOUT_MS + DRAIN_ANSWER_MAX_MS),
    async runCron() {
      const options = { socketPath: controlSocket, method: "POST", path: "/cron" };
      return CronResult.parse(parseJson(await requestText(options, CRON_MAX_MS))).failed;
    },
    async reportLowDisk(shortage) {
      const path = toDiskPath(shortage);
      // Each isolate has a socket of its own.
      for (const socketPath of [objectsControlSocket, controlSocket]) {
        await sendRequest({ socketPath, method: "POST", path }, LOW_DISK_ANSWER_MAX_MS);
      }
    },
  };
}

/** How long the answer may take after the drain. */
const DRAIN_ANSWER_MAX_MS = 2_000;
/** How long a scrape waits for the Worker and its query. */
const METRICS_MAX_MS = 2_000;
const CRON_MAX_MS = 10 * MINUTE_MS;
const LOW_DISK_ANSWER_MAX_MS = 2_000;

const PUBLIC_SOCKET = "public.sock";
const API_SOCKET = "api.sock";
const CONTROL_SOCKET = "control.sock";
const OBJECTS_CONTROL_SOCKET = "objects-control.sock";
const PROBE_SOCKET = "probe.sock";
const FRONT_CONTROL_SOCKET = "front.sock";

/**
 * Forwards what workerd writes. The Worker limits its own entries, which are JSON; those of the runtime are limited here,
 * because a hostile agent can cause one for each visit.
 */
export function createLineForwarder(log: Pick<Log, "forward">) {
  const runtimeLines = new LogLimiter();
  return (line: string, stream: "stdout" | "stderr"): void => {
    if (isNativeStackTrace(line)) return;
    const unlogged = line.startsWith("{") ? 0 : runtimeLines.admit(Date.now());
    if (unlogged === null) return;
    const count = unlogged > 0 ? ` (${unlogged} lines before it were not logged)` : "";
    const level = stream === "stdout" ? "info" : "warn";
    log.forward("worker", level, toSourcePositions(line) + count);
  };
}

/** workerd logs native stack traces with its own errors. They are useless without debug symbols. */
function isNativeStackTrace(line: string): boolean {
  return line.startsWith("stack: ");
}
