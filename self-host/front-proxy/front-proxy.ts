/** Starts the front proxy, which listens on the server's port and passes valid requests on to workerd. */
import { rm } from "node:fs/promises";
import { StartError } from "../errors.ts";
import type { Log } from "../log.ts";
import { SupervisedProcess } from "../processes/child.ts";
import { PING_MAX_MS } from "../processes/watchdog.ts";
import type { TraceMode } from "../../shared/tracing/request-trace.ts";
import { getDescriptorLimit } from "../../sockets/descriptor-limit.ts";
import { COMPILE_CACHE, getArguments, PROGRAMS } from "../processes/programs.ts";
import { probeHealth, requestStatus } from "../internal-requests.ts";
import type { HttpsSettings } from "./https/settings.ts";
import type { Upstreams } from "./upstream.ts";
import { DESCRIPTORS_MIN, getConnectionLimits, type ConnectionLimits } from "./limits.ts";

/** Visitors get what was already sent to them. */
const STOP_MAX_MS = 2_000;

interface FrontProxyOptions {
  host: string;
  port: number;
  https: HttpsSettings | undefined;
  /** The host names of the API, at least one. */
  apiHosts: readonly string[];
  /** The paths of the sockets that workerd listens on, and of the relay's for agents, if the front proxy passes them on. */
  upstreamPaths: Upstreams["upstreamPaths"];
  /** The path of the socket on which workerd answers probes. */
  probePath: string;
  /** The path of the socket on which the front proxy takes requests of the server and of the Worker. */
  controlPath: string;
  /** Which requests are logged with their id. */
  traceRequests: TraceMode;
  limits: ConnectionLimits;
  log: Log;
}

/** Resolves when requests reach the Worker. */
export async function startFrontProxy(options: FrontProxyOptions): Promise<SupervisedProcess> {
  const { host, port, apiHosts, upstreamPaths, traceRequests, limits, log } = options;
  const apiHost = apiHosts[0] ?? "localhost";
  const { total, perSource } = limits;
  const ping = () =>
    requestStatus({ socketPath: options.controlPath, method: "GET", path: "/ping" }, PING_MAX_MS);
  const child = new SupervisedProcess(
    {
      name: "front proxy",
      command: process.execPath,
      args: getArguments(PROGRAMS.frontProxy),
      spawnOptions: {
        env: {
          ...COMPILE_CACHE,
          ...readOutgoingVariables(),
          FRONT_HOST: host,
          FRONT_PORT: String(port),
          FRONT_HTTPS: JSON.stringify(options.https ?? null),
          FRONT_TUNNEL_UPSTREAM: upstreamPaths.tunnel,
          FRONT_API_UPSTREAM: upstreamPaths.api,
          FRONT_RELAY_UPSTREAM: upstreamPaths.relay ?? "",
          FRONT_PROBE_UPSTREAM: options.probePath,
          FRONT_API_HOSTS: apiHosts.join(","),
          FRONT_CONTROL: options.controlPath,
          FRONT_TRACE: traceRequests,
          FRONT_CONNECTIONS: String(total),
          FRONT_CONNECTIONS_PER_SOURCE: Number.isFinite(perSource) ? String(perSource) : "",
        },
      },
      probe: async () => {
        // Another program may answer at the port. The process creates its socket when it accepts connections at all ports.
        await ping();
        await probeHealth({ host, port, apiHost });
      },
      ping,
      // A killed process leaves its socket behind, and the next one could not bind to its path.
      prepare: () => rm(options.controlPath, { force: true }),
      onLine: (line, stream) =>
        log.forward("front proxy", stream === "stdout" ? "info" : "warn", line),
      stopSignal: "SIGTERM",
      stopMaxMs: STOP_MAX_MS,
      signalOnParentExit: "SIGKILL",
    },
    log,
  );
  await child.start();
  return child;
}

/** Variables for requests to other servers: those to the certificate authority. */
const OUTGOING_VARIABLES = ["NODE_EXTRA_CA_CERTS", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];

function readOutgoingVariables(): NodeJS.ProcessEnv {
  const names = OUTGOING_VARIABLES.flatMap((name) => [name, name.toLowerCase()]);
  return Object.fromEntries(
    names.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])),
  );
}

/**
 * @param overrides limits that the operator has set.
 * @param hasProxy whether all visitors come through the operator's own proxy, which is then one single source.
 * @throws StartError when a process may open too few files.
 */
export function readConnectionLimits(
  overrides: Partial<ConnectionLimits>,
  hasProxy: boolean,
): ConnectionLimits {
  const descriptors = getDescriptorLimit();
  if (descriptors < DESCRIPTORS_MIN) {
    throw new StartError(
      `a process may open only ${descriptors} files here, and this server needs ${DESCRIPTORS_MIN}: ` +
        "raise the limit (ulimit -n)",
    );
  }
  const { total, perSource } = getConnectionLimits(descriptors, overrides);
  return { total, perSource: hasProxy ? Infinity : perSource };
}
