/**
 * Holds back all writes to the database for a moment, so that rows and objects can be copied as of the same time. Reads and
 * the traffic of tunnels continue; requests that write wait.
 */
import type pg from "pg";
import { StartError } from "../errors.ts";
import { listTables } from "./database-rows.ts";
import { getErrorMessage } from "../../shared/error-message.ts";

/** While this waits for transactions in progress, new ones wait behind it. */
const LOCK_WAIT_MS = 500;
/** Shorter than the wait, so that a deadlock ends this and not a request; autovacuum gives way after it, too. */
const DEADLOCK_CHECK_MS = 100;
const LOCK_MAX_ATTEMPTS = 10;
/** Requests that write wait for at most this long. */
const WRITE_PAUSE_MAX_MS = 10_000;

/**
 * @param work should stop when its signal is aborted; writes go on then in any case.
 * @throws StartError when the pause can't begin, or the work takes longer than `maxMs`.
 */
export async function withWritePause<Result>(
  client: pg.Client,
  work: (signal: AbortSignal) => Promise<Result>,
  maxMs = WRITE_PAUSE_MAX_MS,
): Promise<Result> {
  await lockTables(client);
  const signal = AbortSignal.timeout(maxMs);
  const { promise: expired, reject } = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => reject(signal.reason as Error));
  try {
    // The work may be in the middle of a long file.
    return await Promise.race([work(signal), expired]);
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new StartError(
      `the objects change faster than they can be copied in ${maxMs} ms: run the backup when there is less traffic, or while the server is stopped`,
    );
  } finally {
    await client.query("rollback");
  }
}

async function lockTables(client: pg.Client): Promise<void> {
  const tables = [...(await listTables(client)).keys()].map((name) => `public."${name}"`);
  for (let attempt = 1; ; attempt++) {
    await client.query("begin");
    await client.query(`set local lock_timeout = ${LOCK_WAIT_MS}`);
    // Only a superuser may change it, as the user of the embedded PostgreSQL is.
    await client.query(
      `select set_config('deadlock_timeout', '${DEADLOCK_CHECK_MS}ms', true) from pg_roles
       where rolname = current_user and rolsuper`,
    );
    try {
      await client.query(`lock table ${tables.join(", ")} in share mode`);
      return;
    } catch (error) {
      await client.query("rollback");
      if (attempt < LOCK_MAX_ATTEMPTS) continue;
      throw new StartError(
        `the database is too busy for a backup (${getErrorMessage(error)}): run it when there is less traffic`,
      );
    }
  }
}
