/**
 * The front proxy: the process of a self-hosted server that visitors, agents and callers of the API connect to. workerd
 * limits neither the number nor the age of connections, and exits when it runs out of descriptors, so this process does
 * it in front of workerd. Started by `front-proxy.ts`, which passes its settings in the environment.
 */
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import type { MetricFamily } from "../../shared/metrics/exposition.ts";
import { RequestTrace } from "../../shared/tracing/request-trace.ts";
import { SPLICED_SOCKET_BUFFER_BYTES } from "../../sockets/splice.ts";
import { watchEventLoopDelay } from "../processes/event-loop-delay.ts";
import { afterReads } from "./after-reads.ts";
import { ConnectedVisitors } from "./connected-visitors.ts";
import { ConnectionFactory } from "./connection-factory.ts";
import { ConnectionLimiter } from "./connection-limiter.ts";
import { createControlServer } from "./control-socket.ts";
import { createListeners } from "./https/listeners.ts";
import { isServedHost } from "./https/served-host.ts";
import type { HttpsSettings } from "./https/settings.ts";
import { FrontProxyMetrics } from "./metrics/front-proxy-metrics.ts";
import { createFrameQueue, createRequestQueue } from "./queue/workerd-queues.ts";
import { WorkerdProbe } from "./queue/workerd-probe.ts";
import { readSettings } from "./settings.ts";

/** Detects visitors whose machine or network is gone. */
const TCP_KEEP_ALIVE_MS = 60_000;
const BACKLOG = 511;
/** How often what takes too long is ended. */
const DEADLINES_CHECK_MS = 1_000;
/** How long visitors may take, at a stop, to receive what was already sent to them. */
const FLUSH_MAX_MS = 1_000;
const FLUSH_CHECK_MS = 10;
const REPORT_INTERVAL_MS = 60_000;
const SOCKET_OPTIONS = {
  allowHalfOpen: true,
  pauseOnConnect: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  highWaterMark: SPLICED_SOCKET_BUFFER_BYTES,
};

const settings = readSettings(process.env);
const metrics = new FrontProxyMetrics();
const limiter = new ConnectionLimiter(settings.limits, metrics);
const queue = createRequestQueue(createProbe());
const frameQueues = {
  visitor: createFrameQueue("visitor", createProbe()),
  program: createFrameQueue("program", createProbe()),
};
const trace = new RequestTrace("front_proxy", settings.traceRequests);
const factory = new ConnectionFactory({ ...settings, metrics, trace, queue, frameQueues });
const visitors = new ConnectedVisitors({ ...settings, limiter, factory, metrics });

const servers: Server[] = [];
const plainServer = createServer(SOCKET_OPTIONS, (socket) => visitors.accept(socket));
await listen(plainServer, settings.host, settings.port);
const readHttpsMetrics = settings.https ? await listenForHttps(settings.https) : () => [];

/** Each queue has its own, because one is sent at a time. */
function createProbe(): () => Promise<void> {
  const probe = new WorkerdProbe(settings.probePath);
  return () => probe.send();
}

/** @returns what reads the metrics of HTTPS. */
async function listenForHttps(https: HttpsSettings): Promise<() => MetricFamily[]> {
  const { host, port, redirectPort } = https;
  const { apiHosts, upstreamPaths } = settings;
  const [apiHost = ""] = apiHosts;
  // It takes 3 MiB, which a server without HTTPS saves.
  const { VisitorSession } = await import("./http2/visitor-session.ts");
  const listeners = await createListeners(https, {
    apiHosts,
    isAllowed: (name) => isServedHost(name, { host: apiHost, socketPath: upstreamPaths.api }),
    socketOptions: SOCKET_OPTIONS,
    admit: (socket) => visitors.admit(socket),
    serve: (socket) => visitors.serveTls(socket, VisitorSession),
  });
  await listen(listeners.https, host, port);
  if (redirectPort !== null) await listen(listeners.redirect, host, redirectPort);
  return listeners.readMetrics;
}

/** Resolves when it accepts connections; if it can't, the process ends. @param host null: all addresses. */
async function listen(server: Server, host: string | null, port: number): Promise<void> {
  servers.push(server);
  server.on("error", (error) => {
    console.error(
      `can't accept connections on ${host ?? "all addresses"} port ${port}: ${error.message}`,
    );
    process.exit(1);
  });
  server.listen({ ...(host !== null && { host }), port, backlog: BACKLOG });
  await once(server, "listening");
}

const readEventLoopDelay = watchEventLoopDelay("front_proxy");
const control = createControlServer({
  readMetrics: () => [
    ...metrics.toFamilies(visitors.connections, settings.limits.total, queue.waitingCount),
    ...readHttpsMetrics(),
    ...readEventLoopDelay(),
  ],
  cutConnection: (key) => visitors.cutResponse(key),
  isConnected: (key) => visitors.isConnected(key),
});
control.listen(settings.controlPath);

setInterval(
  afterReads(() => visitors.checkDeadlines(performance.now())),
  DEADLINES_CHECK_MS,
);
setInterval(() => limiter.reportRefusals(), REPORT_INTERVAL_MS);

process.once("SIGTERM", () => {
  for (const server of servers) server.close();
  visitors.closeSessions();
  const untilMs = performance.now() + FLUSH_MAX_MS;
  setInterval(() => {
    if (visitors.areComplete || performance.now() > untilMs) process.exit(0);
  }, FLUSH_CHECK_MS);
});
