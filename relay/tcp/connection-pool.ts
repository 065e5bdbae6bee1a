/** Matches visitors with the agent's data connections: whichever arrives first waits for the other. */
import type { Socket } from "node:net";
import { adoptSocket } from "../../sockets/socket-reader.ts";
import { reset } from "../../sockets/splice.ts";

export interface PoolLimits {
  idleMax: number;
  backlogMax: number;
  waitMaxMs: number;
}

export interface PoolEvents {
  /** A visitor has got a data connection. */
  onMatch(visitor: Socket, connection: Socket): void;
  /** No data connection arrived in time, or too many visitors are waiting. The visitor was reset. */
  onRefuse(visitor: Socket, reason: "no_agent_connection" | "backlog"): void;
  /** More data connections are needed, beyond those that the agent keeps ready. */
  onConnectionsNeeded(count: number): void;
}

interface WaitingVisitor {
  visitor: Socket;
  untilMs: number;
}

export class ConnectionPool {
  readonly #limits: PoolLimits;
  readonly #events: PoolEvents;
  /** Each with the listener that removes it. */
  readonly #idle = new Map<Socket, () => void>();
  /** In the order of their arrival, and so of their deadlines. */
  #waiting: WaitingVisitor[] = [];
  #unrequestedVisitors = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(limits: PoolLimits, events: PoolEvents) {
    this.#limits = limits;
    this.#events = events;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get idle(): number {
    return this.#idle.size;
  }

  addVisitor(visitor: Socket): void {
    const connection = this.#takeIdle();
    if (connection) return this.#events.onMatch(visitor, connection);
    if (this.#waiting.length >= this.#limits.backlogMax) {
      reset(visitor);
      return this.#events.onRefuse(visitor, "backlog");
    }
    this.#waiting.push({ visitor, untilMs: Date.now() + this.#limits.waitMaxMs });
    this.#scheduleExpiry();
    this.#requestConnections();
  }

  addConnection(connection: Socket): void {
    // The visitor may have disconnected meanwhile.
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      if (!next.visitor.destroyed)
        return this.#events.onMatch(next.visitor, adoptSocket(connection));
    }
    if (this.#isClosed || this.#idle.size >= this.#limits.idleMax) return void connection.destroy();
    const drop = (): void => {
      this.#idle.delete(connection);
      connection.destroy();
    };
    this.#idle.set(connection, drop);
    // The agent sends nothing before the connection has a visitor: any event is its end or an error.
    connection.on("data", drop).on("end", drop).on("error", drop).on("close", drop);
    connection.resume();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const { visitor } of this.#waiting) reset(visitor);
    for (const connection of this.#idle.keys()) connection.destroy();
    this.#waiting = [];
    this.#idle.clear();
  }

  #takeIdle(): Socket | undefined {
    for (const [connection, drop] of this.#idle) {
      this.#idle.delete(connection);
      connection.off("data", drop).off("end", drop).off("error", drop).off("close", drop);
      connection.on("error", () => undefined);
      if (!connection.destroyed && connection.writable) return adoptSocket(connection);
    }
    return undefined;
  }

  /** One message for all visitors of a turn of the event loop. */
  #requestConnections(): void {
    this.#unrequestedVisitors += 1;
    if (this.#unrequestedVisitors > 1) return;
    setImmediate(() => {
      const count = Math.min(this.#unrequestedVisitors, this.#waiting.length);
      this.#unrequestedVisitors = 0;
      if (count > 0 && !this.#isClosed) this.#events.onConnectionsNeeded(count);
    });
  }

  #scheduleExpiry(): void {
    const [first] = this.#waiting;
    if (this.#timer !== undefined || !first) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#expire();
      },
      Math.max(1, first.untilMs - Date.now()),
    );
  }

  #expire(): void {
    const nowMs = Date.now();
    while (this.#waiting[0] && this.#waiting[0].untilMs <= nowMs) {
      const { visitor } = this.#waiting.shift()!;
      if (visitor.destroyed) continue;
      reset(visitor);
      this.#events.onRefuse(visitor, "no_agent_connection");
    }
    this.#scheduleExpiry();
  }
}
