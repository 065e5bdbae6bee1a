/**
 * One connection to PostgreSQL as a pool keeps it, with the two things that `pg` knows and doesn't offer:
 * its raw bytes can be lent to a client of our own, and a prepared statement can be forgotten.
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
  /** What the server told of itself, in its own words: a client expects to hear it. */
  readonly parameters = new Map<string, string>();
  #parser: DataListener[] = [];

  constructor(config?: pg.ClientConfig) {
    super(config);
    this.#wire.on("parameterStatus", ({ parameterName, parameterValue }) => {
      this.parameters.set(parameterName, parameterValue);
    });
    // A connection lost while it is lent is seen by the borrower, one lost while idle by the pool.
    this.on("error", () => {});
  }

  /** Until `takeBack`, what arrives is the borrower's. Only between two answers of the server. */
  lend(): Duplex {
    const { stream } = this.#wire;
    this.#parser = stream.listeners("data") as DataListener[];
    for (const listener of this.#parser) stream.off("data", listener);
    return stream;
  }

  /** Only when the server has answered everything that the borrower asked. */
  takeBack(): void {
    for (const listener of this.#parser) this.#wire.stream.on("data", listener);
  }

  /** What PostgreSQL refused to prepare is nothing to forget. */
  async deallocate(name: string): Promise<void> {
    if (!Object.hasOwn(this.#wire.parsedStatements, name)) return;
    delete this.#wire.parsedStatements[name];
    await this.query(`deallocate "${name}"`);
  }

  get #wire(): ConnectionInternals {
    return (this as unknown as { connection: ConnectionInternals }).connection;
  }
}

/** Whether a connection is of no further use after this error. */
export function isConnectionLost(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError) || error.severity === "FATAL";
}
