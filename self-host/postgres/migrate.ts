/**
 * Brings a database to the schema of this version. `npm start` does it at every start; for a hosted
 * database it is `npm run migrate`, with `DATABASE_URL` in the environment.
 */
import { join } from "node:path";
import { readMigrationFiles } from "drizzle-orm/migrator";
import pg from "pg";
import { ROOT } from "../build/build.ts";
import { getErrorMessage, StartError } from "../errors.ts";
import { readEnvironment, readSettings } from "../settings.ts";

const DATABASE_CONNECT_MAX_MS = 10_000;

/** Any number that nothing else in the database locks by. */
const MIGRATION_LOCK = 7_286_144_531;
const POSTGRES_MIN_VERSION = 15;

/** @throws StartFailure when the database can't be reached. */
export async function connectDatabase(databaseUrl: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: DATABASE_CONNECT_MAX_MS,
  });
  // A connection that breaks while idle reports it here; the next query fails by itself.
  client.on("error", () => {});
  try {
    await client.connect();
  } catch (error) {
    throw new StartError(
      `DATABASE_URL: the database at ${getHost(databaseUrl)} can't be used: ${getErrorMessage(error)}`,
    );
  }
  return client;
}

/**
 * One transaction holds the lock, does the work and records it: of two starts at once the second finds
 * nothing left to do, behind a pooler that shares sessions as well.
 *
 * @returns how many migrations were applied.
 */
export async function migrate(client: pg.Client): Promise<number> {
  await assertSupported(client);
  const migrations = readMigrationFiles({ migrationsFolder: join(ROOT, "migrations") });
  await client.query("begin");
  try {
    await client.query("select pg_advisory_xact_lock($1)", [MIGRATION_LOCK]);
    await client.query("create schema if not exists drizzle");
    await client.query(
      "create table if not exists drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)",
    );
    const { rows } = await client.query<{ last: string | null }>(
      "select max(created_at) as last from drizzle.__drizzle_migrations",
    );
    const last = Number(rows[0]?.last ?? 0);
    const newest = Math.max(0, ...migrations.map(({ folderMillis }) => folderMillis));
    if (last > newest) {
      throw new StartError("the database was used by a newer version, which this one can't read");
    }
    const pending = migrations.filter(({ folderMillis }) => folderMillis > last);
    for (const { sql, hash, folderMillis } of pending) {
      for (const statement of sql) await client.query(statement);
      await client.query(
        "insert into drizzle.__drizzle_migrations (hash, created_at) values ($1, $2)",
        [hash, folderMillis],
      );
    }
    await client.query("commit");
    return pending.length;
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}

async function assertSupported(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ server_version_num: string }>("show server_version_num");
  const version = Math.floor(Number(rows[0]?.server_version_num) / 10_000);
  if (version < POSTGRES_MIN_VERSION) {
    throw new StartError(
      `DATABASE_URL: is PostgreSQL ${version}, at least ${POSTGRES_MIN_VERSION} is needed`,
    );
  }
}

function getHost(databaseUrl: string): string {
  return new URL(databaseUrl).host;
}

if (import.meta.main) {
  try {
    const { databaseUrl } = readSettings(readEnvironment(".env"));
    if (!databaseUrl) throw new StartError("DATABASE_URL: which database to migrate");
    const client = await connectDatabase(databaseUrl);
    try {
      console.log(`${await migrate(client)} migrations applied`);
    } finally {
      await client.end();
    }
  } catch (error) {
    console.error(getErrorMessage(error));
    process.exitCode = 1;
  }
}
