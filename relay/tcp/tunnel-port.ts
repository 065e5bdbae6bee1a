/**
 * The public port of one TCP tunnel, for one association with its agent: admits visitors, gives each a data
 * connection of the agent, and carries the bytes between them.
 */
import type { Log } from "../log.ts";
import { once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { isAddressIn } from "../../shared/cidr.ts";
import {
  DATA_CONNECTION_BACKLOG_MAX,
  DATA_CONNECTION_KEEP_ALIVE_MS,
} from "../../protocol/relay/limits.ts";
import type { VisitorHead } from "../../protocol/relay/control.ts";
import type { TunnelTicket } from "../../protocol/relay/ticket.ts";
import { adoptSocket } from "../../sockets/socket-reader.ts";
import { reset, Splice, SPLICED_SERVER_OPTIONS } from "../../sockets/splice.ts";
import { LISTEN_BACKLOG } from "../limits.ts";
import { ConnectionPool } from "./connection-pool.ts";
import type { TunnelLimits } from "./tunnel-limits.ts";
import type { VisitorSlots } from "./visitor-slots.ts";
import { MINUTE_MS } from "../../shared/time.ts";
import { unmapIpv4Address } from "../../shared/hosts.ts";

const VISITOR_WAIT_MAX_MS = 10_000;
/** The maximum number of idle data connections: those that an agent opens beyond it are closed. */
const IDLE_DATA_CONNECTIONS_MAX = 64;
/** Refusals are counted, and logged no more often than this. */
const REFUSAL_LOG_INTERVAL_MS = MINUTE_MS;

/** Bounds of the visitors that wait for a data connection, and of the data connections that wait for a visitor. */
export interface WaitLimits {
  backlogMax: number;
  waitMaxMs: number;
  idleMax: number;
}

const DEFAULT_WAIT_LIMITS: WaitLimits = {
  backlogMax: DATA_CONNECTION_BACKLOG_MAX,
  waitMaxMs: VISITOR_WAIT_MAX_MS,
  idleMax: IDLE_DATA_CONNECTIONS_MAX,
};

interface TunnelPortOptions {
  ticket: TunnelTicket;
  /** The address to listen on: `0.0.0.0`, `::`, or one of the machine's. */
  bind: string;
  log: Pick<Log, "info" | "warn">;
  /** The tunnel's, which its other associations share. */
  limits: TunnelLimits;
  /** Default: `DEFAULT_WAIT_LIMITS`. */
  waitLimits?: Partial<WaitLimits>;
  /** Counts the connections of the visitors of all ports of the relay. Default: only the tunnel's own limits apply. */
  connections?: VisitorSlots;
  /** Requests `count` data connections beyond the pool from the agent. */
  sendOpen(count: number): void;
}

type TunnelPortRefusal =
  | "address_not_allowed"
  | "source_limit"
  | "tunnel_limit"
  | "relay_limit"
  | "backlog"
  | "no_agent_connection";

export class TunnelPort {
  /** The number of refused visitors since the port was bound. */
  readonly refusals: Record<TunnelPortRefusal, number> = {
    address_not_allowed: 0,
    source_limit: 0,
    tunnel_limit: 0,
    relay_limit: 0,
    backlog: 0,
    no_agent_connection: 0,
  };
  readonly #options: TunnelPortOptions;
  readonly #limits: TunnelLimits;
  readonly #server: Server;
  readonly #pool: ConnectionPool;
  readonly #splices = new Set<Splice>();
  #allowedCidrs: readonly string[] | null;
  #isReleased = false;
  /** Visitors since the port was bound. */
  #connections = 0;
  /** Visitors whose connection is open. */
  #openConnections = 0;
  /** Totals of splices that have ended. */
  #endedBytes = { in: 0, out: 0 };
  #loggedRefusalAtMs = -Infinity;

  constructor(options: TunnelPortOptions) {
    const { ticket, limits, waitLimits } = options;
    this.#options = options;
    this.#limits = limits;
    limits.attachPort();
    this.#allowedCidrs = ticket.cidrs;
    this.#pool = new ConnectionPool(
      { ...DEFAULT_WAIT_LIMITS, ...waitLimits },
      {
        onMatch: (visitor, connection, unread) => this.#join(visitor, connection, unread),
        onRefuse: (visitor, reason) => this.#countRefusal(reason, visitor.remoteAddress),
        onConnectionsNeeded: (count) => options.sendOpen(count),
      },
    );
    this.#server = createServer(SPLICED_SERVER_OPTIONS, (socket) =>
      this.#admit(adoptSocket(socket)),
    );
  }

  // ── Called by the relay ──

  /** Binds the ticket's port. @throws the system's error when that fails: EADDRINUSE, EACCES. */
  async listen(): Promise<void> {
    const { ticket, bind } = this.#options;
    this.#server.listen({ port: ticket.port, host: bind, backlog: LISTEN_BACKLOG });
    // A server that is closed first, by a revocation, never listens.
    await Promise.race([once(this.#server, "listening"), once(this.#server, "close")]);
    this.#server.on("error", (error) =>
      this.#options.log.warn("a tunnel's port failed", this.#toLogFields({ error: error.message })),
    );
  }

  /**
   * A data connection of the agent, upgraded and answered with 101.
   * @param head bytes after the upgrade request, which must be empty.
   */
  takeDataConnection(socket: Socket, head: Buffer): void {
    if (head.length > 0 || this.#isReleased) return void socket.destroy();
    socket.setNoDelay(true);
    socket.setKeepAlive(true, DATA_CONNECTION_KEEP_ALIVE_MS);
    socket.setTimeout(0);
    this.#pool.addConnection(socket);
  }

  /** @param cidrs apply from the next connection on; null when visitors may come from anywhere. */
  setAllowedCidrs(cidrs: string[] | null): void {
    this.#allowedCidrs = cidrs;
  }

  /** Totals since the port was bound. `bytesIn` came from visitors, `bytesOut` went to them. */
  getUsage(): { connections: number; openConnections: number; bytesIn: number; bytesOut: number } {
    let { in: bytesIn, out: bytesOut } = this.#endedBytes;
    for (const splice of this.#splices) {
      bytesIn += splice.bytesFromFirst;
      bytesOut += splice.bytesFromSecond;
    }
    return {
      connections: this.#connections,
      openConnections: this.#openConnections,
      bytesIn,
      bytesOut,
    };
  }

  /**
   * Unbinds the port, while open connections continue: for an agent whose control connection was lost, but whose data
   * connections may still work. `close` may follow.
   */
  release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#limits.detachPort();
    this.#server.close();
    this.#pool.close();
  }

  /** Unbinds the port and resets every connection: the tunnel may no longer be served. */
  close(): void {
    this.release();
    for (const splice of this.#splices) splice.reset();
  }

  // ── Inside ──

  #admit(visitor: Socket): void {
    const address = getAddress(visitor.remoteAddress);
    const refusal = this.#findRefusal(address);
    if (refusal !== null) {
      reset(visitor);
      return this.#countRefusal(refusal, address);
    }
    this.#openConnections += 1;
    this.#connections += 1;
    visitor.on("error", () => undefined);
    visitor.once("close", () => {
      this.#openConnections -= 1;
      this.#limits.release(address);
      this.#options.connections?.free(this.#options.ticket.org, address);
    });
    this.#pool.addVisitor(visitor);
  }

  /**
   * Counts the visitor unless it is refused. In this order: an address that is not allowed must not use up the limits
   * of others.
   */
  #findRefusal(address: string): TunnelPortRefusal | null {
    const { connections, ticket } = this.#options;
    if (this.#allowedCidrs !== null && !isAddressIn(address, this.#allowedCidrs))
      return "address_not_allowed";
    if (address === "") return "source_limit";
    const refusal = this.#limits.admit(address, performance.now());
    if (refusal !== null) return refusal;
    if (connections && !connections.take(ticket.org, address)) {
      this.#limits.release(address);
      return "relay_limit";
    }
    return null;
  }

  #join(visitor: Socket, connection: Socket, unread?: Uint8Array): void {
    const head: VisitorHead = {
      address: getAddress(visitor.remoteAddress),
      port: visitor.remotePort ?? 0,
      localAddress: getAddress(visitor.localAddress),
      localPort: visitor.localPort ?? this.#options.ticket.port,
    };
    connection.write(encodeHead(head));
    const splice: Splice = new Splice(visitor, connection, {
      pacers: this.#limits.pacers,
      ...(unread && { unreadFromFirst: unread }),
      onClose: () => {
        this.#splices.delete(splice);
        this.#endedBytes.in += splice.bytesFromFirst;
        this.#endedBytes.out += splice.bytesFromSecond;
      },
    });
    this.#splices.add(splice);
  }

  #countRefusal(reason: TunnelPortRefusal, address: string | undefined): void {
    this.refusals[reason] += 1;
    const nowMs = performance.now();
    if (nowMs - this.#loggedRefusalAtMs < REFUSAL_LOG_INTERVAL_MS) return;
    this.#loggedRefusalAtMs = nowMs;
    this.#options.log.info("a visitor was refused", this.#toLogFields({ reason, address }));
  }

  #toLogFields(fields: Record<string, unknown>): Record<string, unknown> {
    const { sub, port } = this.#options.ticket;
    return { tunnelId: sub, port, ...fields };
  }
}

/** The length as a u16 (big-endian), then JSON: see protocol/relay/control.ts. */
function encodeHead(head: VisitorHead): Buffer {
  const json = Buffer.from(JSON.stringify(head));
  const length = Buffer.alloc(2);
  length.writeUInt16BE(json.length);
  return Buffer.concat([length, json]);
}

/** @returns "" when the visitor has disconnected. */
function getAddress(address: string | undefined): string {
  return unmapIpv4Address(address ?? "");
}
