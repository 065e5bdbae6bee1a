/** Matches visitors with the agent's data connections: the one that arrives first waits for the other. */
import type { Socket } from "node:net";
import { adoptSocket, setReceiver } from "../../sockets/socket-reader.ts";
import { reset } from "../../sockets/splice.ts";

/** How much is read of a visitor that waits. */
const UNREAD_MAX_BYTES = 4 * 1024;

interface PoolLimits {
  idleMax: number;
  backlogMax: number;
  waitMaxMs: number;
}

interface PoolEvents {
  /** A visitor has got a data connection. @param unread what the visitor has sent while it waited. */
  onMatch(visitor: Socket, connection: Socket, unread?: Uint8Array): void;
  /** No data connection arrived in time, or too many visitors are waiting. The visitor was reset. */
  onRefuse(visitor: Socket, reason: "no_agent_connection" | "backlog"): void;
  /** More data connections are needed, beyond those that the agent keeps ready. */
  onConnectionsNeeded(count: number): void;
}

/** It is read, because only a socket that is read reports a reset. After a FIN the visitor may still wait for an answer. */
class WaitingVisitor {
  readonly visitor: Socket;
  readonly untilMs: number;
  readonly #onLeave: () => void;
  readonly #unread: Buffer[] = [];
  #unreadBytes = 0;

  constructor(visitor: Socket, untilMs: number, onLeave: () => void) {
    this.visitor = visitor;
    this.untilMs = untilMs;
    this.#onLeave = onLeave;
    visitor.once("close", onLeave);
    setReceiver(visitor, (bytes) => {
      this.#unread.push(Buffer.from(bytes));
      this.#unreadBytes += bytes.length;
      return this.#unreadBytes < UNREAD_MAX_BYTES;
    });
    visitor.resume();
  }

  /** Stops reading. @returns what the visitor has sent so far. */
  stop(): Uint8Array {
    this.visitor.off("close", this.#onLeave).pause();
    return Buffer.concat(this.#unread);
  }
}

export class ConnectionPool {
  readonly #limits: PoolLimits;
  readonly #events: PoolEvents;
  /** Each with the listener that removes it. */
  readonly #idle = new Map<Socket, () => void>();
  /** In the order of their arrival, and so of their deadlines. */
  readonly #waiting = new Set<WaitingVisitor>();
  #unrequestedVisitors = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(limits: PoolLimits, events: PoolEvents) {
    this.#limits = limits;
    this.#events = events;
  }

  /** Gives a new visitor an idle data connection, or requests one from the agent, for which the visitor waits. */
  addVisitor(visitor: Socket): void {
    const connection = this.#takeIdle();
    if (connection) return this.#events.onMatch(visitor, connection);
    if (this.#waiting.size >= this.#limits.backlogMax) {
      reset(visitor);
      return this.#events.onRefuse(visitor, "backlog");
    }
    const untilMs = performance.now() + this.#limits.waitMaxMs;
    const waiting = new WaitingVisitor(visitor, untilMs, () => this.#waiting.delete(waiting));
    this.#waiting.add(waiting);
    this.#scheduleExpiry();
    this.#requestConnections();
  }

  /** Gives a new data connection the visitor that has waited longest, or keeps it; more than `idleMax` are closed. */
  addConnection(connection: Socket): void {
    const [next] = this.#waiting;
    if (next) {
      this.#waiting.delete(next);
      return this.#events.onMatch(next.visitor, adoptSocket(connection), next.stop());
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

  /** Resets the visitors that wait, and closes the idle data connections. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    for (const { visitor } of this.#waiting) reset(visitor);
    this.#waiting.clear();
    for (const connection of this.#idle.keys()) connection.destroy();
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
      const count = Math.min(this.#unrequestedVisitors, this.#waiting.size);
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
      Math.max(1, first.untilMs - performance.now()),
    );
  }

  #expire(): void {
    const nowMs = performance.now();
    for (const waiting of this.#waiting) {
      if (waiting.untilMs > nowMs) break;
      this.#waiting.delete(waiting);
      reset(waiting.visitor);
      this.#events.onRefuse(waiting.visitor, "no_agent_connection");
    }
    this.#scheduleExpiry();
  }
}
