/** Statements that are sent to the database in one request of the driver's HTTP mode. */
import type { NeonQueryFunction } from "@neondatabase/serverless";

interface Statement extends PromiseWithResolvers<unknown> {
  text: string;
  params: unknown[];
}

/** All statements of a batch have failed. Its stack has the functions that wait for one of them; that of the cause ends in the driver. */
export class FailedBatchError extends Error {
  override name = "FailedBatchError";

  constructor(cause: unknown) {
    super("a statement of a batch failed", { cause });
  }
}

export class StatementBatch {
  readonly #statements: Statement[] = [];
  #isSent = false;

  get isSent(): boolean {
    return this.#isSent;
  }

  /** Before the batch is sent. @returns the statement's result, whose rows are arrays. */
  async add(text: string, params: unknown[]): Promise<unknown> {
    const statement = { text, params, ...Promise.withResolvers<unknown>() };
    this.#statements.push(statement);
    try {
      return await statement.promise;
    } catch (cause) {
      throw new FailedBatchError(cause);
    }
  }

  /** In a transaction that only reads. If one statement fails, all of them do. */
  send(sqlOverHttp: NeonQueryFunction<false, false>): void {
    this.#isSent = true;
    const statements = this.#statements;
    if (statements.length === 0) return;
    sqlOverHttp
      .transaction((sql) => statements.map(({ text, params }) => sql.query(text, params)), {
        arrayMode: true,
        fullResults: true,
        readOnly: true,
        isolationLevel: "ReadCommitted",
      })
      .then(
        (results) => {
          for (const [at, { resolve }] of statements.entries()) resolve(results[at]);
        },
        (error: unknown) => {
          for (const { reject } of statements) reject(error);
        },
      );
  }
}
