/**
 * Migrates a database to the schema of this version. `npm start` does this at every start; for a hosted database run
 * `npm run migrate` with `DATABASE_URL` in the environment.
 */
import { join } from "node:path";
import { type MigrationMeta, readMigrationFiles } from "drizzle-orm/migrator";
import pg from "pg";
import { ROOT } from "../build/build.ts";
import { StartError } from "../errors.ts";
import { readEnvironment, readSettings } from "../settings.ts";
import { getErrorMessage } from "../../shared/error-message.ts";

const DATABASE_CONNECT_MAX_MS = 10_000;

/** The key of the advisory lock: any number that no other program uses in this database. */
const MIGRATION_LOCK = 7_286_144_531;
const POSTGRES_MIN_VERSION = 15;

/** @throws StartError when the database can't be reached. */
export async function connectDatabase(databaseUrl: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: DATABASE_CONNECT_MAX_MS,
  });
  // A connection that breaks while idle emits this event. No handling is needed, because the next query fails.
  client.on("error", () => {});
  try {
    await client.connect();
  } catch (error) {
    throw new StartError(
      `DATABASE_URL: can't connect to the database at ${getHost(databaseUrl)}: ${getErrorMessage(error)}; ` +
        "check that PostgreSQL runs there, and accepts this user and password",
    );
  }
  return client;
}

/**
 * One transaction holds the lock, runs all pending migrations and records them. So when two servers start at the same
 * time, the second finds no pending migrations. A transaction-scoped lock also works behind a connection pooler.
 *
 * @param untilMs the timestamp of the last migration to apply; by default all are applied.
 * @returns the number of migrations applied.
 */
export async function migrate(client: pg.Client, untilMs = Infinity): Promise<number> {
  await assertSupported(client);
  const migrations = readMigrations();
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
      throw new StartError(
        "the database has the schema of a newer version of Underpass: install that version, or restore a backup of this one into an empty directory",
      );
    }
    const pending = migrations.filter(
      ({ folderMillis }) => folderMillis > last && folderMillis <= untilMs,
    );
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
    // After the loss of the connection, which has rolled back already, this fails too.
    await client.query("rollback").catch(() => undefined);
    throw error;
  }
}

/** @returns the migrations of this version, in their order. */
export function readMigrations(): MigrationMeta[] {
  return readMigrationFiles({ migrationsFolder: join(ROOT, "migrations") });
}

async function assertSupported(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ server_version_num: string }>("show server_version_num");
  const version = Math.floor(Number(rows[0]?.server_version_num) / 10_000);
  if (version < POSTGRES_MIN_VERSION) {
    throw new StartError(
      `DATABASE_URL: the server is PostgreSQL ${version}, but version ${POSTGRES_MIN_VERSION} or newer is required`,
    );
  }
}

function getHost(databaseUrl: string): string {
  return new URL(databaseUrl).host;
}

if (import.meta.main) {
  try {
    const { databaseUrl } = readSettings(readEnvironment(".env"));
    if (!databaseUrl) throw new StartError("DATABASE_URL: set it to the database to migrate");
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
