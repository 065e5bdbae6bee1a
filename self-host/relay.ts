/**
 * Runs the relay next to the server: it provides public TCP and UDP ports. The server does not depend on it. When
 * the relay can't start, the start is retried until it succeeds, and the reason is logged once.
 */
import { rm } from "node:fs/promises";
import { isIPv6 } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

import { getErrorMessage } from "../shared/error-message.ts";
import { parseJsonObject } from "../shared/json.ts";
import { RELAY_PATH } from "../protocol/relay/paths.ts";
import { formatHostAndPort } from "../shared/hosts.ts";
import {
  SupervisedProcess,
  CHILD_RESTART_MAX_MS,
  CHILD_RESTART_MIN_MS,
} from "./processes/child.ts";
import { COMPILE_CACHE, getArguments, PROGRAMS } from "./processes/programs.ts";
import { PING_MAX_MS } from "./processes/watchdog.ts";
import type { Log } from "./log.ts";
import type { LocalRelaySettings, ServerSettings } from "./settings.ts";
import { requestText, toConnectableHost } from "./internal-requests.ts";

/** The relay closes its connections to agents before it exits. */
const RELAY_STOP_MAX_MS = 5_000;
/** How long the start of the server waits for the relay before it reports that it listens. */
const RELAY_CONNECTED_MAX_MS = 5_000;

/** Agents connect to the front proxy, which passes them on. */
export interface AgentRoute {
  /** The URL that agents get. */
  url: string;
  /** The socket on which the relay accepts them. */
  socketPath: string;
}

interface RelayOptions {
  settings: LocalRelaySettings;
  /** undefined: agents connect to the relay's own port. */
  agentRoute: AgentRoute | undefined;
  /** The server's own address. */
  host: string;
  port: number;
  /** A host name of the API. */
  apiHost: string;
  secret: string;
  log: Log;
}

/** In the directory of sockets. */
const AGENT_SOCKET = "relay.sock";

/** @returns undefined unless the server speaks HTTPS, and the operator has not set another URL. */
export function findAgentRoute(
  { relay, https, publicScheme, apiHosts }: ServerSettings,
  publicPort: number,
  socketsDir: string,
): AgentRoute | undefined {
  if (!relay || relay.url !== undefined || !https || publicScheme !== "https") return undefined;
  const { href } = new URL(`wss://${apiHosts[0]}:${publicPort}${RELAY_PATH}`);
  return { url: href, socketPath: join(socketsDir, AGENT_SOCKET) };
}

export interface LocalRelay {
  /** Resolves when the relay is connected to the API, when its first start has failed, or after a short timeout. */
  connectedOrFailed: Promise<void>;
  /** undefined while it does not run. */
  readonly pid: number | undefined;
  readonly restarts: number;
  readonly hangs: number | undefined;
  /** The relay's metrics, as JSON. Rejects while it does not answer. */
  requestMetrics(): Promise<string>;
  stop(): Promise<void>;
}

export function startRelay(options: RelayOptions): LocalRelay {
  const { log } = options;
  const stopping = new AbortController();
  const { promise: connected, resolve: settle } = Promise.withResolvers<void>();
  const deadline = sleep(RELAY_CONNECTED_MAX_MS, undefined, { ref: false });
  let child: SupervisedProcess | undefined;

  async function run(): Promise<void> {
    let loggedReason = "";
    let waitMs = CHILD_RESTART_MIN_MS;
    while (!stopping.signal.aborted) {
      const start = createChild(options);
      child = start.child;
      try {
        await child.start();
        // A connected relay that ends before it is supervised would count as a failed start.
        return void start.connected.then(settle);
      } catch (error) {
        if (stopping.signal.aborted) return;
        const reason = start.lastError() ?? getErrorMessage(error);
        if (reason !== loggedReason) log.warn(`relay: ${reason}; retrying until it starts`);
        loggedReason = reason;
        settle();
      }
      await sleep(waitMs, undefined, { ref: false, signal: stopping.signal }).catch(() => {});
      waitMs = Math.min(waitMs * 2, CHILD_RESTART_MAX_MS);
    }
  }

  const running = run();
  return {
    connectedOrFailed: Promise.race([connected, deadline]),
    get pid() {
      return child?.pid;
    },
    get restarts() {
      return child?.restarts ?? 0;
    },
    get hangs() {
      return child?.hangs ?? 0;
    },
    requestMetrics: () => requestRelayMetrics(options),
    async stop() {
      stopping.abort();
      await child?.stop();
      await running;
    },
  };
}

function createChild(options: RelayOptions) {
  const { settings, agentRoute, host, port, apiHost, secret, log } = options;
  const { first, last } = settings.ports;
  let pid: number | undefined;
  let isListening = false;
  let lastError: string | undefined;
  const { promise: connected, resolve: onConnected } = Promise.withResolvers<void>();

  const child = new SupervisedProcess(
    {
      name: "relay",
      command: process.execPath,
      args: getArguments(PROGRAMS.relay),
      spawnOptions: {
        env: {
          ...COMPILE_CACHE,
          RELAY_API_URL: `http://${formatHostAndPort(toConnectableHost(host), port)}`,
          RELAY_API_HOST: apiHost,
          RELAY_SECRET: secret,
          RELAY_HOST: settings.host,
          RELAY_PORT_RANGE: `${first}-${last}`,
          RELAY_BIND: settings.bind,
          RELAY_URL: settings.url ?? agentRoute?.url ?? "",
          RELAY_AGENT_SOCKET: agentRoute?.socketPath ?? "",
        },
      },
      // Another program may listen on this port: it reports another process id, or none.
      probe: async () => {
        const health = parseJsonObject(await requestRelayHealth(settings));
        if (health.pid !== pid) throw new Error("another program listens on its port");
        isListening = true;
      },
      ping: () => requestRelayHealth(settings, PING_MAX_MS),
      // A killed process leaves its socket behind, and the next one could not bind to its path.
      prepare: async () => {
        if (agentRoute) await rm(agentRoute.socketPath, { force: true });
      },
      onSpawn: (newPid) => {
        pid = newPid;
        return Promise.resolve();
      },
      onLine: (line, stream) => {
        const entry = line.startsWith("{") ? parseJsonObject(line) : {};
        if (entry.message === "connected to the API") onConnected();
        // The reason for a failed start is logged once, not with each retry.
        if (!isListening && (stream === "stderr" || entry.level === "error")) {
          lastError = typeof entry.message === "string" ? entry.message : line;
        } else {
          log.forward("relay", stream === "stdout" ? "info" : "warn", line);
        }
      },
      stopSignal: "SIGTERM",
      stopMaxMs: RELAY_STOP_MAX_MS,
      signalOnParentExit: "SIGKILL",
    },
    log,
  );
  return { child, connected, lastError: () => lastError };
}

const HEALTH_MAX_MS = 2_000;

function requestRelayHealth(settings: LocalRelaySettings, maxMs = HEALTH_MAX_MS): Promise<string> {
  const path = "/health";
  return requestText({ ...getRelayAddress(settings), method: "GET", path }, maxMs);
}

/** The relay answers without its secret only on a loopback address. */
function requestRelayMetrics({ settings, secret }: RelayOptions): Promise<string> {
  const headers = { accept: "application/json", authorization: `Bearer ${secret}` };
  const path = "/metrics";
  return requestText({ ...getRelayAddress(settings), method: "GET", path, headers }, HEALTH_MAX_MS);
}

function getRelayAddress({ bind, ports }: LocalRelaySettings) {
  const host = toConnectableHost(bind);
  return { host, port: ports.first, family: isIPv6(host) ? 6 : undefined };
}
