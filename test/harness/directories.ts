/** Temporary directories for tests, and data directories with a prepared database for servers. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { cp, mkdtemp, readdir, rm, statfs, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Log } from "../../self-host/log.ts";
import { connectDatabase, migrate } from "../../self-host/postgres/migrate.ts";
import { startPostgres } from "../../self-host/postgres/postgres.ts";

/** Processes that run tests are started after the preparation and inherit this variable. */
const PREPARED = "UNDERPASS_TEST_PREPARED_DIR";

export const silentLog: Log = { info() {}, warn() {}, error() {}, forward() {} };

export async function createTemporaryDir(): Promise<string> {
  return mkdtemp(join(tmpdir(), "underpass-test-"));
}

/** The directory in memory of Linux. There, no commit of a database waits for a disk. */
const MEMORY_DIR = "/dev/shm";
/** Enough for all servers and browsers that run at the same time. Containers often have only 64 MiB. */
const MEMORY_MIN_BYTES = 4 * 1024 ** 3;

const DATA_DIR_NAME = /^underpass-test-data-(\d+)-/;

/** @returns whether this machine has a directory in memory with enough room. */
export async function hasMemoryDir(): Promise<boolean> {
  const free = await statfs(MEMORY_DIR).then(
    ({ bavail, bsize }) => bavail * bsize,
    () => 0,
  );
  return free > MEMORY_MIN_BYTES;
}

/** Creates a directory for the data of a server, which need not survive this machine. */
async function createDataDir(): Promise<string> {
  const parent = (await hasMemoryDir()) ? MEMORY_DIR : tmpdir();
  return mkdtemp(join(parent, `underpass-test-data-${process.pid}-`));
}

/** Frees the memory of earlier runs that were killed before they could remove their directories. */
async function removeAbandonedDataDirs(): Promise<void> {
  for (const name of await readdir(MEMORY_DIR).catch(() => [])) {
    const [, pid] = DATA_DIR_NAME.exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid)))
      await rm(join(MEMORY_DIR, name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/**
 * Creates a cluster with the current schema before all tests, because copying one is much faster than creating one. It
 * contains no keys and no rows, so a server on a copy behaves like one that created its own.
 *
 * @returns a function that removes it.
 */
export async function prepareDatabase(): Promise<() => Promise<void>> {
  await removeAbandonedDataDirs();
  const dir = await createDataDir();
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

/** Returns whether `prepareDatabase` has run before the tests. */
export function isDatabasePrepared(): boolean {
  return process.env[PREPARED] !== undefined;
}

/** Creates a data directory with a copy of the prepared database. */
export async function createPreparedDir(): Promise<string> {
  const dir = await createDataDir();
  const prepared = process.env[PREPARED];
  // Benchmarks start servers without preparation.
  if (prepared === undefined) return dir;
  // Preserves owners and modes, because PostgreSQL runs as another user when root runs the tests.
  const [from, to] = [join(prepared, "postgres"), join(dir, "postgres")];
  await promisify(execFile)("cp", ["-a", from, to]);
  await cp(join(prepared, "secrets.json"), join(dir, "secrets.json"));
  return dir;
}
