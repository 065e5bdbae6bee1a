/** The connections of visitors to a front proxy, and the server behind it, which the test plays. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { vi } from "vitest";
import { IDLE_MAX_MS } from "../../self-host/front-proxy/limits.ts";
import { FrontProxyMetrics } from "../../self-host/front-proxy/metrics/front-proxy-metrics.ts";
import { FairQueue } from "../../self-host/front-proxy/queue/fair-queue.ts";
import { VisitorConnection } from "../../self-host/front-proxy/visitor-connection.ts";
import { FramePace } from "../../self-host/front-proxy/websockets/frame-pace.ts";
import { SourceMemory } from "../../shared/bounds/source-memory.ts";
import { RequestTrace } from "../../shared/tracing/request-trace.ts";
import { adoptSocket } from "../../sockets/socket-reader.ts";
import { ConnectionEnd } from "./connection-end.ts";
import { createTemporaryDir } from "./directories.ts";
import { WAIT_OPTIONS } from "./timeouts.ts";

export const CF_BLOB_FIELD = "own: field\r\n";
export const API_HOST = "api";
export const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
export const UPGRADE =
  "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
export const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const ACKNOWLEDGEMENT_KEY = "key-of-the-acknowledgements";
/** All visitors are one source, which may hold half. */
const MESSAGES_MAX_BYTES = 2_000;

export class FrontProxyStage {
  /** The front proxy's connections to the server, in their order. */
  arrived: ConnectionEnd[] = [];
  /** Those for the host `API_HOST`. */
  arrivedAtApi: ConnectionEnd[] = [];
  /** Those of agents for the relay. */
  arrivedAtRelay: ConnectionEnd[] = [];
  connections: VisitorConnection[] = [];
  /** How many connections of the front proxy have ended. */
  closed = 0;
  /** The server's answer to a probe: at once. */
  probe: () => Promise<void> = async () => {};
  readonly queue: FairQueue;
  #visitors: ConnectionEnd[] = [];
  readonly #dir: string;
  readonly #upstream: Server;
  readonly #api: Server;
  readonly #relay: Server;
  readonly #front: Server;

  private constructor(dir: string) {
    this.#dir = dir;
    const memory = new SourceMemory(MESSAGES_MAX_BYTES);
    const pace = new FramePace();
    this.queue = new FairQueue({ probe: () => this.probe(), memory });
    const options = {
      upstreamPaths: {
        tunnel: join(dir, "server.sock"),
        api: join(dir, "api.sock"),
        relay: join(dir, "relay.sock"),
      },
      cfBlobField: CF_BLOB_FIELD,
      connectionKey: ACKNOWLEDGEMENT_KEY,
      apiHosts: new Set([API_HOST]),
      idleMaxMs: IDLE_MAX_MS,
      metrics: new FrontProxyMetrics(),
      trace: new RequestTrace("front_proxy", "off"),
      queue: this.queue,
      findSource: () => "source",
      createWebSocketLimits: (_: string, resume: () => void) => ({
        reservation: memory.createReservation("source"),
        allowance: pace.createAllowance("source", resume),
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
  }

  static async start(): Promise<FrontProxyStage> {
    const stage = new FrontProxyStage(await createTemporaryDir());
    const servers = [stage.#upstream, stage.#api, stage.#relay, stage.#front];
    await Promise.all(servers.map((server) => once(server, "listening")));
    return stage;
  }

  /** Ends all connections. Called after each test. */
  async clear(): Promise<void> {
    for (const { socket } of this.#visitors) socket.destroy();
    await vi.waitUntil(() => this.closed === this.connections.length, WAIT_OPTIONS);
    const arrived = [...this.arrived, ...this.arrivedAtApi, ...this.arrivedAtRelay];
    for (const { socket } of arrived) socket.destroy();
    this.arrived = [];
    this.arrivedAtApi = [];
    this.arrivedAtRelay = [];
    this.connections = [];
    this.#visitors = [];
    this.closed = 0;
  }

  async stop(): Promise<void> {
    for (const server of [this.#upstream, this.#api, this.#relay, this.#front]) server.close();
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
    for (const connection of this.connections) connection.checkDeadlines(Date.now() + ms);
  }
}
