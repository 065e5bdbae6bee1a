/**
 * A pooled connection to PostgreSQL, with three features that `pg` has inside but does not export: access to the raw
 * byte stream, deallocation of a prepared statement, and canceling what runs.
 */
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import pg from "pg";
import { SECOND_MS } from "../../shared/time.ts";

/** How long PostgreSQL may take to answer that it has canceled a statement. */
const CANCEL_ANSWER_MAX_MS = 5 * SECOND_MS;

interface ConnectionInternals {
  stream: Socket;
  parsedStatements: Record<string, string>;
  startup(): void;
  cancel(processId: number, secretKey: number): void;
  on(
    event: "parameterStatus",
    listener: (message: { parameterName: string; parameterValue: string }) => void,
  ): void;
}

type DataListener = (chunk: Buffer) => void;

export class PostgresConnection extends pg.Client {
  /** The ParameterStatus messages of the server, which clients expect after authentication. */
  readonly parameters = new Map<string, string>();
  readonly #config: pg.ClientConfig | undefined;
  #parser: DataListener[] = [];
  /** 0: not limited. */
  #silenceMaxMs = 0;

  constructor(config?: pg.ClientConfig) {
    super(config);
    this.#config = config;
    this.#wire.on("parameterStatus", ({ parameterName, parameterValue }) => {
      this.parameters.set(parameterName, parameterValue);
    });
    // A connection lost while borrowed is noticed by the borrower, one lost while idle by the pool.
    this.on("error", () => {});
  }

  /** Until `returnStream`, the borrower receives all data. Call it only when no response is pending. */
  borrowStream(): Duplex {
    const { stream } = this.#wire;
    this.#parser = stream.listeners("data") as DataListener[];
    for (const listener of this.#parser) stream.off("data", listener);
    return stream;
  }

  /** Call it only when the server has answered every request of the borrower. */
  returnStream(): void {
    for (const listener of this.#parser) this.#wire.stream.on("data", listener);
  }

  /** Does nothing for a statement that PostgreSQL has not prepared. */
  async deallocate(name: string): Promise<void> {
    if (!Object.hasOwn(this.#wire.parsedStatements, name)) return;
    delete this.#wire.parsedStatements[name];
    await this.query(`deallocate "${name}"`);
  }

  /**
   * Call it once, on an open connection. When no byte has passed for `maxMs`, what runs is canceled. If PostgreSQL does not
   * answer that either, nothing arrives on this connection any more, and it is destroyed: a router or a host that is gone
   * ends no connection. PostgreSQL does the same with a transaction of which it hears nothing more, and which holds locks.
   * @param onSilent called each time.
   */
  async limitSilence(maxMs: number, onSilent: () => void): Promise<void> {
    const { stream } = this.#wire;
    stream.setTimeout(maxMs);
    stream.on("timeout", () => {
      onSilent();
      this.#cancelStatement();
      const { bytesRead } = stream;
      setTimeout(() => {
        if (stream.bytesRead === bytesRead) stream.destroy(new Error("PostgreSQL does not answer"));
      }, CANCEL_ANSWER_MAX_MS).unref();
    });
    this.#silenceMaxMs = maxMs;
    await this.#limitIdleTransactions();
  }

  /** Removes what a session has left, such as an open transaction and settings. */
  async reset(): Promise<void> {
    await this.query("rollback");
    await this.query("discard all");
    await this.#limitIdleTransactions();
  }

  async #limitIdleTransactions(): Promise<void> {
    await this.query(`set idle_in_transaction_session_timeout = ${this.#silenceMaxMs}`);
  }

  /** PostgreSQL may not answer: nothing is sent, and what runs fails. */
  destroy(): void {
    this.#wire.stream.destroy();
  }

  /** On a connection of its own, as the protocol demands (PostgreSQL's documentation, 54.2.8). Does nothing if that fails. */
  #cancelStatement(): void {
    const { processID, secretKey } = this as unknown as { processID: number; secretKey: number };
    const other = new pg.Client(this.#config);
    const wire = getInternals(other);
    wire.startup = () => wire.cancel(processID, secretKey);
    other.on("error", () => {});
    // PostgreSQL closes the connection without an answer.
    other.connect().catch(() => undefined);
  }

  get #wire(): ConnectionInternals {
    return getInternals(this);
  }
}

function getInternals(client: pg.Client): ConnectionInternals {
  return (client as unknown as { connection: ConnectionInternals }).connection;
}

/** Returns whether the connection is unusable after this error. */
export function isConnectionLost(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError) || error.severity === "FATAL";
}
