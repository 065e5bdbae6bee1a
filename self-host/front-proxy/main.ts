/**
 * The front proxy: the process of a self-hosted server that visitors, agents and callers of the API connect to. workerd
 * limits neither the number nor the age of connections, and exits when it runs out of descriptors, so this process does
 * it in front of workerd. Started by `front-proxy.ts`, which passes its settings in the environment.
 */
import { createServer, type Server, type Socket } from "node:net";
import { randomBytes } from "node:crypto";
import { z } from "zod";
import { CONNECTION_KEY_FIELD } from "../../protocol/front-proxy/connection-key.ts";
import { adoptSocket } from "../../sockets/socket-reader.ts";
import { SPLICED_SOCKET_BUFFER_BYTES } from "../../sockets/splice.ts";
import { getAddressGroup } from "../../shared/address-group.ts";
import { RequestTrace, TRACE_MODES } from "../../shared/tracing/request-trace.ts";
import { Admission } from "./admission.ts";
import {
  IDLE_MAX_MS,
  PROGRAM_MESSAGES_MAX_BYTES,
  PROXY_IDLE_MAX_MS,
  QUEUED_HEADS_MAX_BYTES,
  UNREAD_BODIES_MAX_BYTES,
  UPSTREAM_IDLE_MAX_MS,
  VISITOR_MESSAGES_MAX_BYTES,
} from "./limits.ts";
import { createControlServer } from "./control-socket.ts";
import { createListeners } from "./https/listeners.ts";
import { HttpsSettings } from "./https/settings.ts";
import { HTTP2 } from "./https/https-server.ts";
import type { VisitorSession, VisitorSessionOptions } from "./http2/visitor-session.ts";
import { FrontProxyMetrics } from "./metrics/front-proxy-metrics.ts";
import { FramePace } from "./websockets/frame-pace.ts";
import { SourceMemory } from "../../shared/bounds/source-memory.ts";
import { CF_BLOB_HEADER } from "../../shared/client-address.ts";
import { unmapIpv4Address } from "../../shared/hosts.ts";
import { requestStatus } from "../internal-requests.ts";
import { watchEventLoopDelay } from "../processes/event-loop-delay.ts";
import { FairQueue } from "./queue/fair-queue.ts";
import { findForwardedSource } from "./queue/forwarded-source.ts";
import { WorkerdProbe } from "./queue/workerd-probe.ts";
import { formatRefusal, TOO_MANY_CONNECTIONS } from "./refusals.ts";
import { VisitorConnection } from "./visitor-connection.ts";
import type { Visitor } from "./visitor-connection-options.ts";

const DEADLINE_INTERVAL_MS = 1_000;
const KEY_BYTES = 12;
/** Detects visitors whose machine or network is gone. */
const TCP_KEEP_ALIVE_MS = 60_000;
const BACKLOG = 511;
/** How long visitors may take, at a stop, to receive what was already sent to them. */
const FLUSH_MAX_MS = 1_000;
const FLUSH_CHECK_MS = 10;
/** Of a host, for a certificate. */
const LOOK_UP_MAX_MS = 5_000;
const REPORT_INTERVAL_MS = 60_000;

const count = z.coerce.number().int().min(1);
const settings = z
  .object({
    FRONT_HOST: z.string(),
    FRONT_PORT: z.coerce.number().int(),
    /** JSON: null when there is only plain HTTP. */
    FRONT_HTTPS: z
      .string()
      .transform((text): unknown => JSON.parse(text))
      .pipe(HttpsSettings.nullable()),
    FRONT_TUNNEL_UPSTREAM: z.string(),
    FRONT_API_UPSTREAM: z.string(),
    /** Empty: no agent is passed on to a relay. */
    FRONT_RELAY_UPSTREAM: z.string(),
    FRONT_PROBE_UPSTREAM: z.string(),
    /** Separated by commas. */
    FRONT_API_HOSTS: z.string().transform((hosts) => new Set(hosts.split(","))),
    /** The path of the socket for requests of the server and of the Worker. */
    FRONT_CONTROL: z.string(),
    FRONT_TRACE: z.enum(TRACE_MODES),
    FRONT_CONNECTIONS: count,
    /** Empty: no limit. */
    FRONT_CONNECTIONS_PER_SOURCE: z.union([z.literal("").transform(() => Infinity), count]),
  })
  .parse(process.env);

const admission = new Admission({
  total: settings.FRONT_CONNECTIONS,
  perSource: settings.FRONT_CONNECTIONS_PER_SOURCE,
});
/** workerd stores up to 32 MiB of each WebSocket message until its last byte arrives, and has no bound for all of them. */
const messages = {
  visitor: new SourceMemory(VISITOR_MESSAGES_MAX_BYTES),
  program: new SourceMemory(PROGRAM_MESSAGES_MAX_BYTES),
};
const unreadBodies = new SourceMemory(UNREAD_BODIES_MAX_BYTES);
const paces = { visitor: new FramePace(), program: new FramePace() };
/** All visitors come through one proxy, so that their address says nothing about their source. */
const isBehindProxy = settings.FRONT_CONNECTIONS_PER_SOURCE === Infinity;
const idleMaxMs = isBehindProxy ? PROXY_IDLE_MAX_MS : IDLE_MAX_MS;
const probe = new WorkerdProbe(settings.FRONT_PROBE_UPSTREAM);
const queue = new FairQueue({
  probe: () => probe.send(),
  memory: new SourceMemory(QUEUED_HEADS_MAX_BYTES),
});
const upstreamPaths = {
  tunnel: settings.FRONT_TUNNEL_UPSTREAM,
  api: settings.FRONT_API_UPSTREAM,
  ...(settings.FRONT_RELAY_UPSTREAM !== "" && { relay: settings.FRONT_RELAY_UPSTREAM }),
};
const connections = new Set<VisitorConnection | VisitorSession>();
/** Those of the connections that use HTTP/2. */
const sessions = new Set<VisitorSession>();
/** Those of HTTP/1.1, and those of sessions in memory, by their keys. */
const connectionByKey = new Map<string, VisitorConnection>();
const metrics = new FrontProxyMetrics();
const trace = new RequestTrace("front_proxy", settings.FRONT_TRACE);
const REACHED_LIMITS = isBehindProxy
  ? `MAX_CONNECTIONS (${settings.FRONT_CONNECTIONS}) was reached`
  : `MAX_CONNECTIONS (${settings.FRONT_CONNECTIONS}) was reached, or by one address MAX_CONNECTIONS_PER_ADDRESS ` +
    `(${settings.FRONT_CONNECTIONS_PER_SOURCE})`;
let refused = 0;

function accept(visitor: Socket): void {
  const release = admit(visitor);
  if (release) return serve(adoptSocket(visitor), release);
  visitor.on("error", () => undefined);
  visitor.end(formatRefusal(TOO_MANY_CONNECTIONS), () => visitor.destroy());
}

/** Counts a connection. @returns a function that ends the count; undefined: the connection is one too many. */
function admit(visitor: Socket): (() => void) | undefined {
  const release = admitSource(readAddress(visitor));
  if (release) metrics.countAcceptedConnection();
  return release;
}

function admitSource(address: string): (() => void) | undefined {
  const result = admission.admit(address);
  if (typeof result !== "string") return result;
  refused += 1;
  metrics.countRefusedConnection(result);
  return undefined;
}

function readAddress(visitor: Socket): string {
  return unmapIpv4Address(visitor.remoteAddress ?? "");
}

/** @param visitor paused. */
function serve(visitor: Socket, handleClosed: () => void): void {
  const address = readAddress(visitor);
  if (address === "") {
    // The visitor has reset the connection: its requests would escape rules and limits for addresses.
    visitor.destroy();
    return handleClosed();
  }
  const connection = createConnection(visitor, address, idleMaxMs, () => {
    connections.delete(connection);
    metrics.countClosedConnection(connection.metrics);
    handleClosed();
  });
  connections.add(connection);
}

function createConnection(
  visitor: Visitor,
  address: string,
  connectionIdleMaxMs: number,
  handleClosed: () => void,
): VisitorConnection {
  const connectionKey = randomBytes(KEY_BYTES).toString("base64url");
  const cfBlob = JSON.stringify({
    clientIp: address,
    [CONNECTION_KEY_FIELD]: connectionKey,
  });
  // Behind a proxy each connection counts as a source of its own: the key occurs once.
  const source = isBehindProxy ? connectionKey : getAddressGroup(address);
  const connection = new VisitorConnection(visitor, {
    upstreamPaths,
    cfBlobField: `${CF_BLOB_HEADER}: ${cfBlob}\r\n`,
    connectionKey,
    apiHosts: settings.FRONT_API_HOSTS,
    idleMaxMs: connectionIdleMaxMs,
    metrics,
    trace,
    queue,
    findSource: (head) => (isBehindProxy ? findForwardedSource(head) : source),
    createWebSocketLimits: (kind, resume) => ({
      reservation: messages[kind].createReservation(source),
      allowance: paces[kind].createAllowance(source, resume),
    }),
    onClose() {
      connectionByKey.delete(connectionKey);
      handleClosed();
    },
  });
  connectionByKey.set(connectionKey, connection);
  return connection;
}

const socketOptions = {
  allowHalfOpen: true,
  pauseOnConnect: true,
  noDelay: true,
  keepAlive: true,
  keepAliveInitialDelay: TCP_KEEP_ALIVE_MS,
  highWaterMark: SPLICED_SOCKET_BUFFER_BYTES,
};
const servers: Server[] = [];
listen(createServer(socketOptions, accept), settings.FRONT_HOST, settings.FRONT_PORT);
if (settings.FRONT_HTTPS) await listenForHttps(settings.FRONT_HTTPS);

async function listenForHttps(https: HttpsSettings): Promise<void> {
  const { host, port, redirectPort } = https;
  // It takes 3 MiB, which a server without HTTPS saves.
  const { VisitorSession } = await import("./http2/visitor-session.ts");
  const listeners = await createListeners(https, {
    apiHosts: settings.FRONT_API_HOSTS,
    isAllowed: isServedHost,
    socketOptions,
    admit,
    // Its count ends when its TCP connection is closed, whether or not there was a handshake.
    serve(visitor) {
      const address = readAddress(visitor);
      if (visitor.alpnProtocol !== HTTP2 || address === "") serve(visitor.pause(), () => undefined);
      else addSession(address, (options) => new VisitorSession(visitor, options));
    },
  });
  listen(listeners.https, host, port);
  if (redirectPort !== null) listen(listeners.redirect, host, redirectPort);
}

function addSession(
  address: string,
  create: (options: VisitorSessionOptions) => VisitorSession,
): void {
  const session = create({
    connectionsMax: Math.min(settings.FRONT_CONNECTIONS, settings.FRONT_CONNECTIONS_PER_SOURCE),
    idleMaxMs,
    admit: () => admitSource(address),
    createReservation: () => unreadBodies.createReservation(getAddressGroup(address)),
    serve: (stream, handleClosed) =>
      createConnection(stream, address, UPSTREAM_IDLE_MAX_MS, handleClosed),
    onClose() {
      connections.delete(session);
      sessions.delete(session);
      metrics.countClosedConnection(session.metrics);
    },
  });
  connections.add(session);
  sessions.add(session);
}

/** Whether a host belongs to this server or to one of its tunnels. */
async function isServedHost(name: string): Promise<boolean> {
  const [apiHost = ""] = settings.FRONT_API_HOSTS;
  const path = `/domains/allowed?domain=${encodeURIComponent(name)}`;
  const target = { socketPath: settings.FRONT_API_UPSTREAM, headers: { host: apiHost }, path };
  const status = await requestStatus(target, LOOK_UP_MAX_MS);
  if (status === 200 || status === 404) return status === 200;
  throw new Error(`the look-up of the host was answered with ${status}`);
}

/** @param host null: all addresses. */
function listen(server: Server, host: string | null, port: number): void {
  servers.push(server);
  server.on("error", (error) => {
    console.error(
      `can't accept connections on ${host ?? "all addresses"} port ${port}: ${error.message}`,
    );
    process.exit(1);
  });
  server.listen({ ...(host !== null && { host }), port, backlog: BACKLOG });
}

const readEventLoopDelay = watchEventLoopDelay("front_proxy");
const control = createControlServer({
  readMetrics: () => [
    ...metrics.toFamilies(connections, settings.FRONT_CONNECTIONS, queue.waitingCount),
    ...readEventLoopDelay(),
  ],
  cutConnection(key) {
    const connection = connectionByKey.get(key);
    connection?.cutResponse();
    return connection !== undefined;
  },
});
control.listen(settings.FRONT_CONTROL);

setInterval(() => {
  const nowMs = Date.now();
  for (const connection of connections) connection.checkDeadlines(nowMs);
}, DEADLINE_INTERVAL_MS);
setInterval(() => {
  if (refused === 0) return;
  console.error(
    `${refused} connections were answered with 503 in the last minute: ${REACHED_LIMITS}; raise the limit, or ulimit -n, ` +
      "unless this is an attack",
  );
  refused = 0;
}, REPORT_INTERVAL_MS);

process.once("SIGTERM", () => {
  for (const server of servers) server.close();
  for (const session of sessions) session.close();
  const untilMs = Date.now() + FLUSH_MAX_MS;
  setInterval(() => {
    const isComplete = [...connections].every((connection) => connection.isComplete);
    if (isComplete || Date.now() > untilMs) process.exit(0);
  }, FLUSH_CHECK_MS);
});
