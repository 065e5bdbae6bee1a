/** Connections to PostgreSQL, which callers share by turns. */
import pg from "pg";
import { getErrorMessage } from "../../shared/error-message.ts";
import { MINUTE_MS, SECOND_MS } from "../../shared/time.ts";
import type { Log } from "../log.ts";
import { ConnectionTurns, type MissedTurn } from "./connection-turns.ts";
import { PostgresConnection } from "./postgres-connection.ts";

/** How long a query or a transaction waits for its turn, and then for a connection. */
const GATEWAY_CONNECTION_WAIT_MS = 10_000;
/**
 * How long a connection in use may be silent. Longer than any statement of the Worker takes, and than an operator holds a lock:
 * while a statement waits, its caller has one connection less.
 */
const GATEWAY_SILENCE_MAX_MS = MINUTE_MS;
/** How long statements that run when the pool is closed may take. Nothing waits for their results any more. */
const GATEWAY_CLOSE_MAX_MS = 2 * SECOND_MS;

export type PooledConnection = PostgresConnection & pg.PoolClient;

/** A query or a transaction that needs a connection. */
export interface ConnectionRequest {
  /** undefined: the server's own work. */
  caller: string | undefined;
  /** Resolves when the client has disconnected. */
  disconnected: Promise<void>;
}

export interface PoolUsage {
  used: number;
  idle: number;
  limit: number;
  /** Queries or transactions that wait for a connection. */
  waiting: number;
}

/** No connection is free, or PostgreSQL can't be reached. */
export class NoConnectionError extends Error {
  override name = "NoConnectionError";

  constructor(reason: string) {
    super(`no connection to the database: ${reason}`);
  }
}

const REASONS: Record<MissedTurn, string> = {
  too_many: "too many of the same caller wait already",
  too_late: "others of the same caller did not end in time",
  disconnected: "the client has disconnected",
};

interface ConnectionPoolOptions {
  databaseUrl: string;
  connections: number;
  /** How many queries or transactions wait for their turn; those of one caller are at most half of them. */
  waitingMax: number;
  silenceMaxMs?: number;
  log: Log;
}

export class ConnectionPool {
  readonly #pool: pg.Pool;
  readonly #turns: ConnectionTurns;
  readonly #used = new Set<PooledConnection>();
  /** A restart of PostgreSQL ends all connections, which is one event for the log. */
  #isLossLogged = false;

  /** A network that is cut makes all connections silent. */
  #isSilenceLogged = false;

  constructor({
    databaseUrl,
    connections,
    waitingMax,
    silenceMaxMs = GATEWAY_SILENCE_MAX_MS,
    log,
  }: ConnectionPoolOptions) {
    const options = {
      Client: PostgresConnection,
      connectionString: databaseUrl,
      max: connections,
      connectionTimeoutMillis: GATEWAY_CONNECTION_WAIT_MS,
      keepAlive: true,
      // The pool waits for the promise, which its types do not say.
      onConnect: (connection: pg.ClientBase) =>
        (connection as PooledConnection).limitSilence(silenceMaxMs, () => {
          if (this.#isSilenceLogged) return;
          this.#isSilenceLogged = true;
          log.warn(
            `gateway: PostgreSQL has not answered for ${silenceMaxMs / SECOND_MS} s: the statement is canceled, or the ` +
              "connection replaced if PostgreSQL does not answer that either",
          );
        }),
    };
    this.#pool = new pg.Pool(options);
    // The pool removes an idle connection that breaks, such as after a restart of PostgreSQL.
    this.#pool.on("error", (error) => {
      // The pool does not wait until its connections have ended, and PostgreSQL stops next.
      if (this.#pool.ending || this.#isLossLogged) return;
      this.#isLossLogged = true;
      log.warn(
        `gateway: idle connections to PostgreSQL were lost, and are replaced when needed: ${getErrorMessage(error)}`,
      );
    });
    const waitMaxMs = GATEWAY_CONNECTION_WAIT_MS;
    this.#turns = new ConnectionTurns({ connections, waitingMax, waitMaxMs });
  }

  get usage(): PoolUsage {
    const { totalCount, idleCount, waitingCount, options } = this.#pool;
    return {
      used: totalCount - idleCount,
      idle: idleCount,
      limit: options.max,
      waiting: waitingCount + this.#turns.waitingCount,
    };
  }

  /**
   * Runs `work` with a connection, which it releases.
   * @throws NoConnectionError
   */
  async use<Result>(
    { caller, disconnected }: ConnectionRequest,
    work: (connection: PooledConnection) => Promise<Result>,
  ): Promise<Result> {
    const outcome = await this.#turns.begin(caller, disconnected);
    if (outcome !== "turn") throw new NoConnectionError(REASONS[outcome]);
    let connection: PooledConnection | undefined;
    try {
      connection = await this.#connect();
      this.#used.add(connection);
      return await work(connection);
    } finally {
      if (connection) this.#used.delete(connection);
      this.#turns.end(caller);
    }
  }

  async #connect(): Promise<PooledConnection> {
    try {
      const connection = (await this.#pool.connect()) as PooledConnection;
      this.#isLossLogged = false;
      this.#isSilenceLogged = false;
      return connection;
    } catch (error) {
      throw new NoConnectionError(getErrorMessage(error));
    }
  }

  async close(): Promise<void> {
    const timer = setTimeout(() => {
      for (const connection of this.#used) connection.destroy();
    }, GATEWAY_CLOSE_MAX_MS);
    await this.#pool.end();
    clearTimeout(timer);
  }
}
