/** Failures of the database that pass: its outages, how these are described in a log, and changes that have disturbed each other. */
import { getErrorCode, getErrorMessage } from "../shared/error-message.ts";
import { SECOND_MS } from "../shared/time.ts";

/** The database did not answer, or its connection was lost in the middle of a transaction. */
export class DatabaseOutageError extends Error {
  override name = "DatabaseOutageError";
}

/**
 * For work that waits for little else than the database, whose machine may hang.
 * @throws DatabaseOutageError when it takes longer. It goes on.
 */
export async function failAfter<Result>(
  maxMs: number,
  work: () => Promise<Result>,
): Promise<Result> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    reject(new DatabaseOutageError(`no answer within ${maxMs / SECOND_MS} s`));
  }, maxMs);
  try {
    return await Promise.race([work(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/**
 * The classes of SQLSTATE for a database that can't serve now: connection failures, insufficient resources, and intervention
 * by an operator, such as a shutdown or a canceled statement (PostgreSQL's documentation, appendix A).
 */
const UNAVAILABLE_STATES = /^(?:08|53|57)/;

/** PostgreSQL aborts one of two changes that wait for each other (40P01), or that can't both take effect (40001). */
const CONFLICT_STATES = /^40(?:P01|001)$/;

/** Whether an error, or a cause of it, says that a transaction was aborted because of another one: nothing is wrong with it. */
export function isTransactionConflict(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false;
  return CONFLICT_STATES.test(getErrorCode(thrown) ?? "") || isTransactionConflict(thrown.cause);
}

/** Whether an error, or a cause of it, says that the database has no free connection, can't be reached or can't write. */
export function isDatabaseUnavailable(thrown: unknown): boolean {
  return findOutage(thrown) !== undefined;
}

/** @returns one line without a stack trace, undefined for an error that is no outage. */
export function describeOutage(thrown: unknown): string | undefined {
  const outage = findOutage(thrown);
  return outage && `the database is unavailable: ${getErrorMessage(outage)}`;
}

function findOutage(thrown: unknown): Error | undefined {
  if (!(thrown instanceof Error)) return undefined;
  if (thrown instanceof DatabaseOutageError) return thrown;
  return UNAVAILABLE_STATES.test(getErrorCode(thrown) ?? "") ? thrown : findOutage(thrown.cause);
}
