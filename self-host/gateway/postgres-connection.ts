/**
 * A pooled connection to PostgreSQL, with two features that `pg` has inside but does not export: access to the raw
 * byte stream, and deallocation of a prepared statement.
 */
import type { Duplex } from "node:stream";
import pg from "pg";

interface ConnectionInternals {
  stream: Duplex;
  parsedStatements: Record<string, string>;
  on(
    event: "parameterStatus",
    listener: (message: { parameterName: string; parameterValue: string }) => void,
  ): void;
}

type DataListener = (chunk: Buffer) => void;

export class PostgresConnection extends pg.Client {
  /** The ParameterStatus messages of the server, which clients expect after authentication. */
  readonly parameters = new Map<string, string>();
  #parser: DataListener[] = [];

  constructor(config?: pg.ClientConfig) {
    super(config);
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

  get #wire(): ConnectionInternals {
    return (this as unknown as { connection: ConnectionInternals }).connection;
  }
}

/** Returns whether the connection is unusable after this error. */
export function isConnectionLost(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError) || error.severity === "FATAL";
}
