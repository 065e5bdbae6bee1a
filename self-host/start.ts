/**
 * `npm start`: Underpass on one machine. Starts PostgreSQL, the gateway in front of it, workerd with the production
 * bundle, the front proxy, and the relay in this order, keeps them running, and stops them in reverse order. Only the front
 * proxy is stopped after workerd, because it passes on the last responses.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildIfChanged, ROOT } from "./build/build.ts";
import { DiskWatch, readDiskSpace } from "./disk-space.ts";
import { StartError } from "./errors.ts";
import type { SetupCode } from "./postgres/database-setup.ts";
import { createLog } from "./log.ts";
import { readConnectionLimits, startFrontProxy } from "./front-proxy/front-proxy.ts";
import type { ConnectionLimits } from "./front-proxy/limits.ts";
import type { SupervisedProcess } from "./processes/child.ts";
import type { HttpsSettings } from "./front-proxy/https/settings.ts";
import { findUsablePort } from "./processes/ports.ts";
import { readEnvironment, readSettings, type ServerSettings } from "./settings.ts";
import { startMetricsServer } from "./metrics/metrics-server.ts";
import { listMetricsParts, type ServerParts } from "./metrics/server-metrics.ts";
import { findRelayWarnings, readOutgoingPorts } from "./relay-warnings.ts";
import { findAgentRoute, startRelay, type AgentRoute, type LocalRelay } from "./relay.ts";
import { prepareHttps } from "./https.ts";
import { findSharedSite } from "./shared-site.ts";
import {
  startBackendServices,
  buildWorkerBindings,
  type BackendServices,
} from "./backend-services.ts";
import { ScheduledJobs } from "./workerd/scheduled-jobs.ts";
import { startWorkerd, type Workerd } from "./workerd/workerd.ts";
import { getErrorMessage } from "../shared/error-message.ts";

const log = createLog(process.stdout);
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** One Ctrl-C under `npm start` arrives twice, from the terminal and from npm. The copy is not a second request. */
const SECOND_SIGNAL_MIN_MS = 1_000;
const PARENT_CHECK_INTERVAL_MS = 500;

async function main(): Promise<void> {
  const stopped = waitForSignal();
  await using cleanup = new AsyncDisposableStack();
  const settings = readSettings(readEnvironment(".env"));
  const started = start(settings, cleanup);
  const signal = await Promise.race([started.then(() => undefined), stopped]);
  if (signal !== undefined) {
    // No request is served yet. Children that have started are stopped when this process exits.
    process.exit(0);
  }
  await stopped;
  log.info("stopping: agents are notified, requests in flight may finish");
}

/** Starts the parts in the order in which they need each other. `cleanup` stops them. */
async function start(settings: ServerSettings, cleanup: AsyncDisposableStack): Promise<void> {
  warnAboutSharedSite(settings);
  for (const line of findRelayWarnings(settings, readOutgoingPorts())) log.warn(line);
  const limits = readConnectionLimits(settings.connectionLimits, settings.trustProxy);
  const backend = await startBackendServices(settings, log, cleanup, "socket");
  const port = await findUsablePort(settings.host, settings.port);
  const https = await prepareHttps(settings, log);
  const publicPort = settings.publicPort ?? https?.port ?? port;
  if (existsSync(join(ROOT, "workers/index.ts"))) await buildIfChanged();
  const agentRoute = findAgentRoute(settings, publicPort, backend.dataDir.socketsDir);
  const run: Run = { settings, backend, port, https, publicPort, agentRoute, cleanup };
  const workerd = await startWorker(run);
  const disk = await watchDisk(run, workerd);
  const frontProxy = await startPublicListener(run, workerd, limits);
  const jobs = new ScheduledJobs({ run: () => workerd.runCron(), log });
  cleanup.defer(() => jobs.stop());
  const relay = await startOwnRelay(run);
  await serveMetrics(run, { disk, workerd, jobs, frontProxy, relay });
  announce(settings, publicPort, backend.setup);
}

/** What the parts of one run of the server share. */
interface Run {
  settings: ServerSettings;
  backend: BackendServices;
  /** Where the front proxy listens for plain HTTP. */
  port: number;
  /** undefined: it listens for nothing else. */
  https: HttpsSettings | undefined;
  /** In URLs. */
  publicPort: number;
  /** undefined: the front proxy passes no agents on to the relay. */
  agentRoute: AgentRoute | undefined;
  cleanup: AsyncDisposableStack;
}

function getApiHost({ apiHosts }: ServerSettings): string {
  return apiHosts[0] ?? "localhost";
}

async function startWorker({ settings, backend, publicPort, cleanup }: Run): Promise<Workerd> {
  const workerd = await startWorkerd({
    dataDir: backend.dataDir,
    apiHost: getApiHost(settings),
    gatewayAddress: backend.gateway.address,
    bindings: buildWorkerBindings(settings, backend, publicPort),
    allowPrivateFetch: settings.allowPrivateFetch,
    log,
  });
  cleanup.defer(() => workerd.child.stop());
  return workerd;
}

async function watchDisk(
  { settings, backend, cleanup }: Run,
  workerd: Workerd,
): Promise<DiskWatch> {
  const disk = new DiskWatch({
    readSpace: () => readDiskSpace(backend.dataDir.path),
    reserveBytes: settings.diskReserveBytes,
    reportLow: (shortage) => workerd.reportLowDisk(shortage),
    log,
  });
  await disk.check();
  void disk.run();
  cleanup.defer(() => disk.stop());
  return disk;
}

/** The front proxy. It is stopped after workerd, because it passes on the last responses. */
async function startPublicListener(
  { settings, port, https, agentRoute, cleanup }: Run,
  workerd: Workerd,
  limits: ConnectionLimits,
): Promise<SupervisedProcess> {
  const frontProxy = await startFrontProxy({
    host: settings.host,
    port,
    https,
    apiHosts: settings.apiHosts,
    upstreamPaths: {
      tunnel: workerd.publicSocket,
      api: workerd.apiSocket,
      ...(agentRoute && { relay: agentRoute.socketPath }),
    },
    probePath: workerd.probeSocket,
    controlPath: workerd.frontControlSocket,
    traceRequests: settings.traceRequests,
    limits,
    log,
  });
  cleanup.defer(async () => {
    await drain(workerd);
    await workerd.child.stop();
    await frontProxy.stop();
  });
  return frontProxy;
}

async function drain(workerd: Workerd): Promise<void> {
  try {
    await workerd.drain();
  } catch (error) {
    log.warn(
      `draining: requests in flight may be cut off, because the drain failed: ${getErrorMessage(error)}`,
    );
  }
}

/** @returns undefined when the settings have no relay, or one on another machine. */
async function startOwnRelay({
  settings,
  backend,
  port,
  agentRoute,
  cleanup,
}: Run): Promise<LocalRelay | undefined> {
  if (!settings.relay) return undefined;
  const relay = startRelay({
    settings: settings.relay,
    agentRoute,
    host: settings.host,
    port,
    apiHost: getApiHost(settings),
    secret: backend.secrets.RELAY_SECRET,
    log,
  });
  // Stopped before the Worker, so that the Worker receives the relay's last counters.
  cleanup.defer(() => relay.stop());
  await relay.connectedOrFailed;
  return relay;
}

async function serveMetrics(
  { settings, backend, cleanup }: Run,
  parts: Omit<ServerParts, "databaseUrl" | "gateway" | "postgres">,
): Promise<void> {
  if (!settings.metrics) return;
  const { databaseUrl, gateway, postgres, secrets } = backend;
  const metrics = await startMetricsServer({
    ...settings.metrics,
    token: secrets.METRICS_TOKEN,
    parts: listMetricsParts({ databaseUrl, gateway, postgres, ...parts }),
  });
  cleanup.defer(() => metrics.close());
  log.info("metrics are served", { url: metrics.url });
}

function warnAboutSharedSite({ apiHosts, serviceDomain }: ServerSettings): void {
  const shared = findSharedSite(apiHosts, serviceDomain);
  if (!shared) return;
  log.warn(
    `pages of tunnels (*.${serviceDomain}) and the API (${shared.apiHost}) are both below ${shared.site}: a page can set ` +
      "cookies for the API; set SERVICE_DOMAIN to a name below another registrable domain (docs/operators/operations.md)",
  );
}

function announce(
  { publicScheme, serviceDomain, apiHosts }: ServerSettings,
  publicPort: number,
  setup: SetupCode | undefined,
): void {
  const suffix = publicPort === (publicScheme === "https" ? 443 : 80) ? "" : `:${publicPort}`;
  const url = `${publicScheme}://${apiHosts[0]}${suffix}`;
  const tunnels = `${publicScheme}://<name>.${serviceDomain}${suffix}`;
  // The same address as everywhere else: the agent's logins on localhost and on 127.0.0.1 are separate.
  const option = url === AGENT_DEFAULT_SERVER ? "" : ` --server ${url}`;
  const firstLogin = setup && `npx underpass login --setup ${setup.code}${option}`;

  if (!process.stdout.isTTY) {
    log.info("listening", { url, tunnels, setupCode: setup?.code, firstLogin });
    return;
  }
  console.log(`
  Underpass is running.

      dashboard and API   ${url}
      tunnels             ${tunnels}
`);
  if (setup) {
    console.log(`  This server has no owner yet. To create the owner's account, open the dashboard and enter the code
  ${setup.code}, or run on the machine with your local server:

      ${firstLogin}
      npx underpass http 3000
`);
  }
}

const AGENT_DEFAULT_SERVER = "http://localhost:8787";

/**
 * Resolves with the first signal. A second signal exits the process immediately. If npm is killed, no signal reaches
 * this process, so it exits as well.
 */
async function waitForSignal(): Promise<NodeJS.Signals> {
  const { promise, resolve } = Promise.withResolvers<NodeJS.Signals>();
  const parentPid = process.ppid;
  if (process.env.npm_lifecycle_event === "start") {
    setInterval(() => {
      if (process.ppid !== parentPid) process.exit(1);
    }, PARENT_CHECK_INTERVAL_MS).unref();
  }
  let firstSignalAtMs: number | undefined;
  for (const signal of SIGNALS) {
    process.on(signal, () => {
      const nowMs = performance.now();
      if (firstSignalAtMs !== undefined && nowMs - firstSignalAtMs > SECOND_SIGNAL_MIN_MS)
        process.exit(1);
      firstSignalAtMs ??= nowMs;
      resolve(signal);
    });
  }
  return promise;
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    const text = error instanceof StartError ? error.message : getErrorMessage(error);
    process.stderr.write(`underpass: ${text}\n`);
    process.exit(1);
  },
);
