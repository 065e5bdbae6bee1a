/** Connections of the gateway that PostgreSQL ends, as at its restart, and those on which it does not answer. */
import { rm } from "node:fs/promises";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { startFaultProxy } from "../../../chaos/faults/fault-proxy.ts";
import {
  ConnectionPool,
  type PooledConnection,
} from "../../../self-host/gateway/connection-pool.ts";
import { type EmbeddedPostgres, startPostgres } from "../../../self-host/postgres/postgres.ts";
import { createTemporaryDir, silentLog } from "../../harness/directories.ts";
import { WAIT_MAX_MS, WAIT_OPTIONS } from "../../harness/timeouts.ts";

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

/** What the server itself asks for. */
const REQUEST = { caller: undefined, disconnected: new Promise<void>(() => undefined) };
const SILENCE_MAX_MS = 300;

function createPool(databaseUrl: string, { log = silentLog, silenceMaxMs = SILENCE_MAX_MS } = {}) {
  const limits = { connections: CONNECTIONS, waitingMax: 10, silenceMaxMs };
  return new ConnectionPool({ databaseUrl, ...limits, log });
}

async function query(connection: PooledConnection, text: string): Promise<unknown> {
  try {
    return await connection.query(text);
  } finally {
    connection.release(true);
  }
}

describe("when PostgreSQL does not answer", () => {
  test("on any connection, because the network was cut, all of them are replaced", async () => {
    const url = new URL(postgres.url);
    await using proxy = await startFaultProxy(Number(url.port));
    url.host = `127.0.0.1:${proxy.port}`;
    const warn = vi.fn();
    const pool = createPool(url.href, { log: { ...silentLog, warn } });
    const { promise: allOpen, resolve } = Promise.withResolvers<void>();
    let open = 0;
    const uses = Array.from({ length: CONNECTIONS }, () =>
      pool.use(REQUEST, async (connection) => {
        if (++open === CONNECTIONS) resolve();
        await allOpen;
        proxy.freeze();
        return query(connection, "select 1");
      }),
    );
    const outcomes = await Promise.allSettled(uses);
    expect(outcomes.map(({ status }) => status)).toEqual(Array(CONNECTIONS).fill("rejected"));
    const use = pool.use(REQUEST, (connection) => query(connection, "select 1"));
    await expect(use).resolves.toBeDefined();
    expect(warn.mock.calls).toHaveLength(1);
    expect(warn.mock.calls[0]?.[0]).toContain("PostgreSQL has not answered for 0.3 s");
    await pool.close();
  });

  test("when the server stops, it stops nevertheless", async () => {
    const url = new URL(postgres.url);
    await using proxy = await startFaultProxy(Number(url.port));
    url.host = `127.0.0.1:${proxy.port}`;
    const pool = createPool(url.href, { silenceMaxMs: WAIT_MAX_MS });
    const { promise: frozen, resolve } = Promise.withResolvers<void>();
    const use = pool.use(REQUEST, (connection) => {
      proxy.freeze();
      resolve();
      return query(connection, "select 1");
    });
    await frozen;
    await Promise.all([expect(use).rejects.toThrow("Connection terminated"), pool.close()]);
  });

  test("and hears no more of a transaction, its locks are released", async () => {
    const url = new URL(postgres.url);
    await using proxy = await startFaultProxy(Number(url.port));
    url.host = `127.0.0.1:${proxy.port}`;
    const pool = createPool(url.href);
    const other = new pg.Client({ connectionString: postgres.url });
    await other.connect();
    await pool.use(REQUEST, async (connection) => {
      // As at the end of a session.
      await connection.reset();
      await connection.query("begin");
      await connection.query("select pg_advisory_xact_lock(1)");
      proxy.freeze();
      await other.query("select pg_advisory_lock(1)");
      connection.release(true);
    });
    await other.end();
    await pool.close();
  });

  test("to a statement that waits for a lock, it is canceled there too", async () => {
    const pool = createPool(postgres.url);
    const holder = new pg.Client({ connectionString: postgres.url });
    await holder.connect();
    await holder.query("select pg_advisory_lock(1)");
    const use = pool.use(REQUEST, (connection) => query(connection, "select pg_advisory_lock(1)"));
    await expect(use).rejects.toMatchObject({ code: "57014" });
    const { rows } = await holder.query("select from pg_locks where not granted");
    expect(rows).toEqual([]);
    await pool.close();
    await holder.end();
  });
});

test("the log has one line for all that are lost at the same time, and another one for the next time", async () => {
  const warn = vi.fn();
  const log = { ...silentLog, warn };
  const pool = createPool(postgres.url, { log });
  const other = new pg.Client({ connectionString: postgres.url });
  await other.connect();

  async function loseAll(): Promise<void> {
    const { promise: allOpen, resolve } = Promise.withResolvers<void>();
    const uses = Array.from({ length: CONNECTIONS }, () =>
      pool.use(REQUEST, async (connection) => {
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
