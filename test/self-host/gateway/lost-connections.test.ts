/** Connections of the gateway that PostgreSQL ends, as at its restart. */
import { rm } from "node:fs/promises";
import pg from "pg";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { ConnectionPool } from "../../../self-host/gateway/connection-pool.ts";
import { type EmbeddedPostgres, startPostgres } from "../../../self-host/postgres/postgres.ts";
import { createTemporaryDir, silentLog } from "../../harness/directories.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const CONNECTIONS = 5;

let dir: string;
let postgres: EmbeddedPostgres;
beforeAll(async () => {
  dir = await createTemporaryDir();
  postgres = await startPostgres(dir, "a password", silentLog);
}, 60_000);
afterAll(async () => {
  await postgres.stop();
  await rm(dir, { recursive: true });
});

test("the log has one line for all that are lost at the same time, and another one for the next time", async () => {
  const warn = vi.fn();
  const log = { ...silentLog, warn };
  const options = { databaseUrl: postgres.url, connections: CONNECTIONS, waitingMax: 10, log };
  const pool = new ConnectionPool(options);
  const other = new pg.Client({ connectionString: postgres.url });
  await other.connect();

  async function loseAll(): Promise<void> {
    const { promise: allOpen, resolve } = Promise.withResolvers<void>();
    const request = { caller: undefined, disconnected: new Promise<void>(() => undefined) };
    const uses = Array.from({ length: CONNECTIONS }, () =>
      pool.use(request, async (connection) => {
        if (pool.usage.used === CONNECTIONS) resolve();
        await allOpen;
        connection.release();
      }),
    );
    await Promise.all(uses);
    await other.query(
      "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and backend_type = 'client backend'",
    );
    await vi.waitUntil(() => pool.usage.idle === 0, WAIT_OPTIONS);
  }

  await loseAll();
  expect(warn.mock.calls).toHaveLength(1);
  expect(warn.mock.calls[0]?.[0]).toContain("idle connections to PostgreSQL were lost");
  await loseAll();
  expect(warn.mock.calls).toHaveLength(2);
  await pool.close();
  await other.end();
});
