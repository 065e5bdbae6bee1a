/**
 * Rebuilds the data directory of an earlier version from a record: its migrations, its rows, its object storage
 * and its keys.
 */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { readMigrationFiles } from "drizzle-orm/migrator";
import type pg from "pg";
import { ROOT } from "../../../self-host/build/build.ts";
import { connectDatabase } from "../../../self-host/postgres/migrate.ts";
import { startPostgres } from "../../../self-host/postgres/postgres.ts";
import { HOUR_MS, MINUTE_MS } from "../../../shared/time.ts";
import { createPreparedDir, silentLog } from "../directories.ts";

interface OldMigration {
  hash: string;
  created_at: string;
}

export interface OldRecord {
  /** When its server was stopped. */
  recordedAt: string;
  migrations: OldMigration[];
}

export interface OldData {
  dataDir: string;
  /** Added to the recorded timestamps, so that the old server seems to have stopped within the last minute. */
  shiftMs: number;
  /** Rows of each table of that version's schema. */
  rowCounts: Map<string, number>;
}

/** @param replaced text of the record, and what to write instead. */
export async function createOldDataDir(
  recordDir: string,
  { recordedAt, migrations }: OldRecord,
  replaced: Record<string, string>,
): Promise<OldData> {
  const read = async (name: string) => {
    let text = await readFile(join(recordDir, name), "utf8");
    for (const [from, to] of Object.entries(replaced)) text = text.replaceAll(from, to);
    return text;
  };
  const dataDir = await createPreparedDir();
  const secretsPath = join(dataDir, "secrets.json");
  const { postgres: password } = JSON.parse(await readFile(secretsPath, "utf8")) as {
    postgres: string;
  };
  const secrets = JSON.parse(await read("secrets.json")) as object;
  await writeFile(secretsPath, JSON.stringify({ ...secrets, postgres: password }), { mode: 0o600 });

  const shiftMs = Math.floor((Date.now() - new Date(recordedAt).getTime()) / MINUTE_MS) * MINUTE_MS;
  const postgres = await startPostgres(dataDir, password, silentLog);
  let rowCounts: Map<string, number>;
  try {
    const client = await connectDatabase(postgres.url);
    await applyMigrations(client, migrations);
    await client.query("set session_replication_role = replica");
    await client.query(await read("rows.sql"));
    rowCounts = await countRows(client);
    await shiftTimestamps(client, [...rowCounts.keys()], shiftMs);
    await client.end();
  } finally {
    await postgres.stop();
  }
  await writeObjects(join(dataDir, "objects"), await read("objects.sql"));
  return { dataDir, shiftMs, rowCounts };
}

/** Replaces the current schema by that of the record. Migrations must never change: an edited one is an error. */
async function applyMigrations(client: pg.Client, migrations: OldMigration[]): Promise<void> {
  const files = readMigrationFiles({ migrationsFolder: join(ROOT, "migrations") });
  await client.query("drop schema public cascade; drop schema drizzle cascade");
  await client.query("create schema public; create schema drizzle");
  await client.query(
    "create table drizzle.__drizzle_migrations (id serial primary key, hash text not null, created_at bigint)",
  );
  for (const { hash, created_at } of migrations) {
    const file = files.find((one) => one.hash === hash && one.folderMillis === Number(created_at));
    if (!file) throw new Error(`the migration of ${created_at} was edited or removed`);
    for (const statement of file.sql) await client.query(statement);
    await client.query(
      "insert into drizzle.__drizzle_migrations (hash, created_at) values ($1, $2)",
      [hash, created_at],
    );
  }
}

async function countRows(client: pg.Client): Promise<Map<string, number>> {
  const { rows: tables } = await client.query<{ name: string }>(
    "select tablename as name from pg_tables where schemaname = 'public' order by 1",
  );
  const counts = new Map<string, number>();
  for (const { name } of tables) {
    const { rows } = await client.query<{ n: number }>(`select count(*)::int as n from ${name}`);
    counts.set(name, rows[0]!.n);
  }
  return counts;
}

/** Otherwise recorded sessions, invitations and traffic would expire at some time, and the test would fail. */
async function shiftTimestamps(
  client: pg.Client,
  tables: string[],
  shiftMs: number,
): Promise<void> {
  const hoursMs = Math.floor(shiftMs / HOUR_MS) * HOUR_MS;
  for (const table of tables) {
    // The signed bytes of a token contain its times too. These tokens are valid for a hundred years.
    if (table === "tokens") continue;
    const { rows } = await client.query<{ name: string }>(
      `select column_name as name from information_schema.columns
       where table_schema = 'public' and table_name = $1 and data_type = 'timestamp with time zone'`,
      [table],
    );
    // Hourly traffic must still start at a full hour.
    const by = table === "traffic" ? "case grain when 'hour' then $2::float8 else $1 end" : "$1";
    const values = table === "traffic" ? [shiftMs, hoursMs] : [shiftMs];
    const changes = rows.map(
      ({ name }) => `${name} = ${name} + (${by})::float8 * interval '1 millisecond'`,
    );
    if (changes.length > 0) await client.query(`update ${table} set ${changes.join(", ")}`, values);
  }
}

async function writeObjects(objectsDir: string, text: string): Promise<void> {
  const sections = text.split(/^-- (underpass-\w+\/\w+\.sqlite)\n/m).slice(1);
  for (let at = 0; at < sections.length; at += 2) {
    const path = join(objectsDir, sections[at]!);
    await mkdir(dirname(path), { recursive: true, mode: 0o700 });
    const file = new DatabaseSync(path);
    file.exec(`begin; ${sections[at + 1]!} commit`);
    file.close();
  }
}
