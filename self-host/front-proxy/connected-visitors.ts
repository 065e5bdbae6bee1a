/**
 * The visitors that are connected now. A new one is counted, gets a connection of HTTP/1.1 or a session of HTTP/2, and is
 * kept here until it leaves.
 */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { getAddressGroup } from "../../shared/address-group.ts";
import { SourceMemory } from "../../shared/bounds/source-memory.ts";
import { unmapIpv4Address } from "../../shared/hosts.ts";
import { adoptSocket } from "../../sockets/socket-reader.ts";
import type { ConnectionFactory } from "./connection-factory.ts";
import type { ConnectionLimiter } from "./connection-limiter.ts";
import { SmallFrameLimiter } from "./http2/small-frame-limiter.ts";
import type { VisitorSession } from "./http2/visitor-session.ts";
import { HTTP2 } from "./https/https-server.ts";
import {
  IDLE_MAX_MS,
  PROXY_IDLE_MAX_MS,
  UNREAD_BODIES_MAX_BYTES,
  UPSTREAM_IDLE_MAX_MS,
} from "./limits.ts";
import type { FrontProxyMetrics } from "./metrics/front-proxy-metrics.ts";
import { formatRefusal, TOO_MANY_CONNECTIONS } from "./refusals.ts";
import type { FrontProxySettings } from "./settings.ts";
import type { VisitorConnection } from "./visitor-connection.ts";
import type { Visitor } from "./visitor-connection-options.ts";

const KEY_BYTES = 12;

interface ConnectedVisitorsOptions extends Pick<FrontProxySettings, "limits" | "isBehindProxy"> {
  limiter: ConnectionLimiter;
  factory: ConnectionFactory;
  metrics: FrontProxyMetrics;
}

export class ConnectedVisitors {
  readonly #options: ConnectedVisitorsOptions;
  readonly #idleMaxMs: number;
  readonly #connections = new Set<VisitorConnection | VisitorSession>();
  /** The connections that use HTTP/2. */
  readonly #sessions = new Set<VisitorSession>();
  /** The connections that use HTTP/1.1, and those of sessions in memory, by their keys. */
  readonly #connectionByKey = new Map<string, VisitorConnection>();
  readonly #unreadBodies = new SourceMemory(UNREAD_BODIES_MAX_BYTES);
  readonly #smallFrames = new SmallFrameLimiter();

  constructor(options: ConnectedVisitorsOptions) {
    this.#options = options;
    this.#idleMaxMs = options.isBehindProxy ? PROXY_IDLE_MAX_MS : IDLE_MAX_MS;
  }

  // ── New visitors ──

  /** Serves a connection of plain HTTP, or answers that there are too many. */
  accept(socket: Socket): void {
    const release = this.admit(socket);
    if (release) return this.#serve(adoptSocket(socket), release);
    socket.on("error", () => undefined);
    socket.end(formatRefusal(TOO_MANY_CONNECTIONS), () => socket.destroy());
  }

  /** Counts a connection. @returns a function that ends the count; undefined: the connection is one too many. */
  admit(socket: Socket): (() => void) | undefined {
    return this.#options.limiter.admitConnection(readAddress(socket));
  }

  /**
   * Serves a connection of HTTPS after its handshake. It was counted before, until its TCP connection is closed.
   * @param Session is loaded only by a server with HTTPS.
   */
  serveTls(socket: TLSSocket, Session: typeof VisitorSession): void {
    const address = readAddress(socket);
    if (socket.alpnProtocol === HTTP2 && address !== "")
      this.#serveSession(socket, address, Session);
    else this.#serve(socket.pause(), () => undefined);
  }

  /** @param socket paused. */
  #serve(socket: Socket, handleClosed: () => void): void {
    const address = readAddress(socket);
    if (address === "") {
      // The visitor has reset the connection: its requests would escape rules and limits for addresses.
      socket.destroy();
      return handleClosed();
    }
    const connection = this.#connect(socket, address, this.#idleMaxMs, () => {
      this.#connections.delete(connection);
      this.#options.metrics.countClosedConnection(connection.metrics);
      handleClosed();
    });
    this.#connections.add(connection);
  }

  #serveSession(socket: Socket, address: string, Session: typeof VisitorSession): void {
    const { limits, limiter, metrics } = this.#options;
    const source = getAddressGroup(address);
    const session = new Session(socket, {
      connectionsMax: Math.min(limits.total, limits.perSource),
      idleMaxMs: this.#idleMaxMs,
      admit: () => limiter.admitStream(address),
      createReservation: () => this.#unreadBodies.createReservation(source),
      takeSmallFrames: (count) => this.#smallFrames.take(source, count, performance.now()),
      serve: (stream, handleClosed) =>
        this.#connect(stream, address, UPSTREAM_IDLE_MAX_MS, handleClosed),
      onClose: () => {
        this.#connections.delete(session);
        this.#sessions.delete(session);
        metrics.countClosedConnection(session.metrics);
      },
    });
    this.#connections.add(session);
    this.#sessions.add(session);
  }

  #connect(
    visitor: Visitor,
    address: string,
    idleMaxMs: number,
    handleClosed: () => void,
  ): VisitorConnection {
    const key = randomBytes(KEY_BYTES).toString("base64url");
    const onClose = () => {
      this.#connectionByKey.delete(key);
      handleClosed();
    };
    const connection = this.#options.factory.create(visitor, { address, key, idleMaxMs, onClose });
    this.#connectionByKey.set(key, connection);
    return connection;
  }

  // ── All visitors ──

  get connections(): Iterable<VisitorConnection | VisitorSession> {
    return this.#connections;
  }

  /** Ends a response that can't be completed. @returns false when there is no such connection. */
  cutResponse(key: string): boolean {
    const connection = this.#connectionByKey.get(key);
    connection?.cutResponse();
    return connection !== undefined;
  }

  /** @param key of a visitor's connection. */
  isConnected(key: string): boolean {
    return this.#connectionByKey.has(key);
  }

  /** Ends the connections that take too long. Called about once a second. */
  checkDeadlines(nowMs: number): void {
    for (const connection of this.#connections) connection.checkDeadlines(nowMs);
  }

  /** Ends each session of HTTP/2 when its running requests have ended. */
  closeSessions(): void {
    for (const session of this.#sessions) session.close();
  }

  /** Whether no response can follow, and all visitors have everything that was sent to them. */
  get areComplete(): boolean {
    return [...this.#connections].every((connection) => connection.isComplete);
  }
}

/** @returns an empty string when the visitor has already reset the connection. */
function readAddress(socket: Socket): string {
  return unmapIpv4Address(socket.remoteAddress ?? "");
}
