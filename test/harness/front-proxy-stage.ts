/** The connections of visitors to a front proxy, and the server behind it, which the test plays. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect as connectHttp2, type ClientHttp2Session } from "node:http2";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { vi } from "vitest";
import { IDLE_MAX_MS, UPSTREAM_IDLE_MAX_MS } from "../../self-host/front-proxy/limits.ts";
import { FrontProxyMetrics } from "../../self-host/front-proxy/metrics/front-proxy-metrics.ts";
import type { FairQueue } from "../../self-host/front-proxy/queue/fair-queue.ts";
import {
  createFrameQueue,
  createRequestQueue,
} from "../../self-host/front-proxy/queue/workerd-queues.ts";
import { HEAD_MAX_BYTES } from "../../self-host/front-proxy/http1/request-head.ts";
import { SmallFrameLimiter } from "../../self-host/front-proxy/http2/small-frame-limiter.ts";
import { VisitorSession } from "../../self-host/front-proxy/http2/visitor-session.ts";
import { VisitorConnection } from "../../self-host/front-proxy/visitor-connection.ts";
import type { Visitor } from "../../self-host/front-proxy/visitor-connection-options.ts";
import { FrameAllowance } from "../../self-host/front-proxy/websockets/frame-allowance.ts";
import type { OpenWebSocket } from "../../self-host/front-proxy/websockets/open-web-socket.ts";
import { SourceMemory } from "../../shared/bounds/source-memory.ts";
import { RequestTrace } from "../../shared/tracing/request-trace.ts";
import { adoptSocket } from "../../sockets/socket-reader.ts";
import { ConnectionEnd } from "./connection-end.ts";
import { createTemporaryDir } from "./directories.ts";
import { FrameEnd, type StartOptions } from "./formats/http2-frames.ts";
import { WAIT_OPTIONS } from "./timeouts.ts";

export const CF_BLOB_FIELD = "own: field\r\n";
export const API_HOST = "api";
export const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
export const HANDSHAKE_FIELDS =
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
export const UPGRADE = `GET / HTTP/1.1\r\nHost: a\r\n${HANDSHAKE_FIELDS}Connection: upgrade\r\nUpgrade: websocket\r\n\r\n`;
export const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const CONNECTION_KEY = "key-of-the-connection";
/** All visitors are one source, which may hold half. */
const MESSAGES_MAX_BYTES = 2_000;

/** What waits of the bodies of HTTP/2 requests, of which one source may hold half. */
export const UNREAD_BODIES_MAX_BYTES = 2 * 1024 * 1024;
export const CONNECTIONS_MAX = 12;

export class FrontProxyStage {
  /** The front proxy's connections to the server, in their order. */
  arrived: ConnectionEnd[] = [];
  /** Those for the host `API_HOST`. */
  arrivedAtApi: ConnectionEnd[] = [];
  /** Those of agents for the relay. */
  arrivedAtRelay: ConnectionEnd[] = [];
  connections: VisitorConnection[] = [];
  /** Those with HTTP/2. */
  sessions: VisitorSession[] = [];
  /** How many of them have ended. */
  closedSessions = 0;
  /** How many requests of sessions count as connections. */
  admitted = 0;
  /** How many connections of the front proxy have ended. */
  closed = 0;
  /** The server's answer to a probe: at once. */
  probe: () => Promise<void> = async () => {};
  readonly queue: FairQueue;
  #visitors: { socket: Socket }[] = [];
  readonly #dir: string;
  readonly #upstream: Server;
  readonly #api: Server;
  readonly #relay: Server;
  readonly #front: Server;
  readonly #http2: Server;
  readonly #clients: ClientHttp2Session[] = [];

  private constructor(dir: string) {
    this.#dir = dir;
    const memory = new SourceMemory(MESSAGES_MAX_BYTES);
    const probe = () => this.probe();
    const frameQueues = {
      visitor: createFrameQueue("visitor", probe),
      program: createFrameQueue("program", probe),
    };
    this.queue = createRequestQueue(probe, memory);
    const options = {
      upstreamPaths: {
        tunnel: join(dir, "server.sock"),
        api: join(dir, "api.sock"),
        relay: join(dir, "relay.sock"),
      },
      cfBlobField: CF_BLOB_FIELD,
      connectionKey: CONNECTION_KEY,
      apiHosts: new Set([API_HOST]),
      idleMaxMs: IDLE_MAX_MS,
      metrics: new FrontProxyMetrics(),
      trace: new RequestTrace("front_proxy", "off"),
      queue: this.queue,
      findSource: () => "source",
      createWebSocketLimits: (kind: OpenWebSocket["kind"], resume: () => void) => ({
        reservation: memory.createReservation("source"),
        allowance: new FrameAllowance(frameQueues[kind], "source", resume),
      }),
      onClose: () => (this.closed += 1),
    };
    this.#upstream = createServer({ allowHalfOpen: true }, (socket) =>
      this.arrived.push(new ConnectionEnd(socket)),
    );
    this.#upstream.listen(options.upstreamPaths.tunnel);
    this.#api = createServer({ allowHalfOpen: true }, (socket) =>
      this.arrivedAtApi.push(new ConnectionEnd(socket)),
    );
    this.#api.listen(options.upstreamPaths.api);
    this.#relay = createServer({ allowHalfOpen: true }, (socket) =>
      this.arrivedAtRelay.push(new ConnectionEnd(socket)),
    );
    this.#relay.listen(options.upstreamPaths.relay);
    this.#front = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (socket) =>
      this.connections.push(new VisitorConnection(adoptSocket(socket), options)),
    );
    this.#front.listen(0, "127.0.0.1");
    const bodies = new SourceMemory(UNREAD_BODIES_MAX_BYTES);
    const smallFrames = new SmallFrameLimiter();
    const serve = (stream: Visitor, handleClosed: () => void) => {
      const onClose = () => {
        options.onClose();
        handleClosed();
      };
      const connection = new VisitorConnection(stream, {
        ...options,
        idleMaxMs: UPSTREAM_IDLE_MAX_MS,
        onClose,
      });
      this.connections.push(connection);
      return connection;
    };
    this.#http2 = createServer((socket) =>
      this.sessions.push(
        new VisitorSession(socket, {
          connectionsMax: CONNECTIONS_MAX,
          idleMaxMs: IDLE_MAX_MS,
          admit: () => this.#admit(),
          createReservation: () => bodies.createReservation("source"),
          takeSmallFrames: (count) => smallFrames.take("source", count, performance.now()),
          serve,
          onClose: () => (this.closedSessions += 1),
        }),
      ),
    );
    this.#http2.listen(0, "127.0.0.1");
  }

  static async start(): Promise<FrontProxyStage> {
    const stage = new FrontProxyStage(await createTemporaryDir());
    const servers = [stage.#upstream, stage.#api, stage.#relay, stage.#front, stage.#http2];
    await Promise.all(servers.map((server) => once(server, "listening")));
    return stage;
  }

  /** Ends all connections. Called after each test. */
  async clear(): Promise<void> {
    for (const { socket } of this.#visitors) socket.destroy();
    for (const client of this.#clients.splice(0)) client.destroy();
    const { connections, sessions } = this;
    await vi.waitUntil(() => this.closed === connections.length, WAIT_OPTIONS);
    await vi.waitUntil(() => this.closedSessions === sessions.length, WAIT_OPTIONS);
    const arrived = [...this.arrived, ...this.arrivedAtApi, ...this.arrivedAtRelay];
    for (const { socket } of arrived) socket.destroy();
    this.arrived = [];
    this.arrivedAtApi = [];
    this.arrivedAtRelay = [];
    this.connections = [];
    this.sessions = [];
    this.#visitors = [];
    this.closed = 0;
    this.closedSessions = 0;
  }

  async stop(): Promise<void> {
    const servers = [this.#upstream, this.#api, this.#relay, this.#front, this.#http2];
    for (const server of servers) server.close();
    await rm(this.#dir, { recursive: true });
  }

  /** A new connection of a visitor. */
  async visit(): Promise<ConnectionEnd> {
    const { port } = this.#front.address() as AddressInfo;
    const visitor = new ConnectionEnd(connect({ port, allowHalfOpen: true }));
    this.#visitors.push(visitor);
    await vi.waitUntil(() => this.connections.length === this.#visitors.length, WAIT_OPTIONS);
    return visitor;
  }

  /** A new connection of a visitor with HTTP/2. */
  async visitWithHttp2(): Promise<ClientHttp2Session> {
    const client = connectHttp2(`http://127.0.0.1:${this.http2Port}`, {
      maxSendHeaderBlockLength: 2 * HEAD_MAX_BYTES,
    });
    client.on("error", () => undefined);
    this.#clients.push(client);
    await once(client, "remoteSettings");
    return client;
  }

  /** The same for one whose frames the test writes. */
  async visitWithFrames(options?: StartOptions): Promise<FrameEnd> {
    const visitor = new FrameEnd(connect(this.http2Port, "127.0.0.1"));
    this.#visitors.push(visitor);
    await visitor.start(options);
    return visitor;
  }

  get http2Port(): number {
    return (this.#http2.address() as AddressInfo).port;
  }

  #admit(): (() => void) | undefined {
    if (this.admitted === CONNECTIONS_MAX) return undefined;
    this.admitted += 1;
    return () => (this.admitted -= 1);
  }

  /** The server's end of the front proxy's connection with this index. */
  async server(index = 0): Promise<ConnectionEnd> {
    await vi.waitUntil(() => this.arrived.length > index, WAIT_OPTIONS);
    return this.arrived[index]!;
  }

  /** The relay's end of the last connection to it. */
  async relay(): Promise<ConnectionEnd> {
    await vi.waitUntil(() => this.arrivedAtRelay.length > 0, WAIT_OPTIONS);
    return this.arrivedAtRelay.at(-1)!;
  }

  passTime(ms: number): void {
    const nowMs = performance.now() + ms;
    for (const connection of this.connections) connection.checkDeadlines(nowMs);
    for (const session of this.sessions) session.checkDeadlines(nowMs);
  }
}
