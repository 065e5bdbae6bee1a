/** Directories of tests: new ones, and for servers such as have their database already. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Log } from "../../self-host/log.ts";
import { connectDatabase, migrate } from "../../self-host/postgres/migrate.ts";
import { startPostgres } from "../../self-host/postgres/postgres.ts";

/** Processes in which tests run are started after the preparation, and inherit its environment. */
const PREPARED = "UNDERPASS_TEST_PREPARED_DIR";

export const silentLog: Log = { info() {}, warn() {}, error() {}, forward() {} };

export async function createTemporaryDir(): Promise<string> {
  return mkdtemp(join(tmpdir(), "underpass-test-"));
}

/**
 * Makes a cluster with today's schema, before all tests: to copy it takes a moment, where making one takes
 * seconds of both cores. There are no keys and no rows in it, so that each server is as new as one that made
 * its own.
 *
 * @returns what removes it after them.
 */
export async function prepareDatabase(): Promise<() => Promise<void>> {
  const dir = await createTemporaryDir();
  const secrets = {
    gateway: randomBytes(32).toString("hex"),
    postgres: randomBytes(32).toString("hex"),
  };
  await writeFile(join(dir, "secrets.json"), JSON.stringify(secrets), { mode: 0o600 });
  const postgres = await startPostgres(dir, secrets.postgres, silentLog);
  try {
    const client = await connectDatabase(postgres.url);
    await migrate(client);
    await client.end();
  } finally {
    await postgres.stop();
  }
  process.env[PREPARED] = dir;
  return () => rm(dir, { recursive: true, force: true });
}

/** Whether `prepareDatabase` has run before the tests. */
export function isDatabasePrepared(): boolean {
  return process.env[PREPARED] !== undefined;
}

/** A data directory for a server that is not about the making of its database. */
export async function createPreparedDir(): Promise<string> {
  const dir = await createTemporaryDir();
  const prepared = process.env[PREPARED];
  // Benchmarks start servers too, and prepare nothing.
  if (prepared === undefined) return dir;
  // With owners and modes: PostgreSQL runs as another user when the tests are root's.
  const [from, to] = [join(prepared, "postgres"), join(dir, "postgres")];
  await promisify(execFile)("cp", ["-a", from, to]);
  await cp(join(prepared, "secrets.json"), join(dir, "secrets.json"));
  return dir;
}
