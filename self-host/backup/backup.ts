/**
 * `npm run backup -- --to FILE|DIRECTORY`: one file with the rows, the objects and the keys of a self-hosted server, while
 * it runs or while it is stopped. docs/operators/operations.md says what the file contains, and as of when.
 */
import { mkdir, rename, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type pg from "pg";
import packageJson from "../../package.json" with { type: "json" };
import { StartError } from "../errors.ts";
import { connectDatabase } from "../postgres/migrate.ts";
import { readEnvironment, readSettings } from "../settings.ts";
import { ArchiveWriter, syncDirectory } from "./archive-writer.ts";
import {
  stderrLog,
  formatBytes,
  parseOptions,
  removeAtExit,
  resolvePath,
  runCommand,
} from "./command.ts";
import { archiveTables, beginSnapshot, describeDatabase } from "./database-rows.ts";
import { BACKUP_FORMAT, SECRETS_PATH } from "./manifest.ts";
import { ObjectCopies } from "./object-copies.ts";
import { openBackupSource } from "./backup-source.ts";
import { withWritePause } from "./write-pause.ts";
import { getErrorCode } from "../../shared/error-message.ts";

const USAGE = "npm run backup -- --to FILE or DIRECTORY";
/** How often files that change are copied before the writes are held back. */
const EARLY_PASSES_MAX = 5;
/** When the last pass copied no more than this, the next one, while the writes are held back, takes a moment. */
const SHORT_PASS_FILES = 20;
const SHORT_PASS_BYTES = 16 * 2 ** 20;
const PROGRESS_INTERVAL_MS = 5_000;

await runCommand("backup", async () => {
  const settings = readSettings(readEnvironment(".env"));
  const { to } = parseOptions(["to"], USAGE);
  await using cleanup = new AsyncDisposableStack();
  const target = await findTarget(resolvePath(to));
  const source = await openBackupSource(settings, stderrLog, cleanup);
  const partial = await createPartialDir(`${target}.partial`);
  cleanup.use(removeAtExit(partial));

  const copies = new ObjectCopies(source.objectsDir, join(partial, "objects"));
  await copyEarly(copies);
  const snapshot = await connectDatabase(source.databaseUrl);
  cleanup.defer(() => snapshot.end());
  await takeSnapshot(snapshot, copies, source.databaseUrl);

  const path = join(partial, "archive");
  const archive = new ArchiveWriter(path);
  cleanup.defer(() => archive.abort());
  cleanup.use(reportProgress(archive));
  await archive.addFile(SECRETS_PATH, join(settings.dataDir, SECRETS_PATH));
  const secretsInEnvironment = Object.keys(settings.secrets);
  await archiveSnapshot(archive, { snapshot, copies, secretsInEnvironment });
  await rename(path, target);
  await syncDirectory(dirname(target));
  console.log(
    `wrote ${target}: ${formatBytes((await stat(target)).size)}, ${formatBytes(sumSizes(archive))} before compression`,
  );
  if (secretsInEnvironment.length > 0) {
    console.log(
      `not in the backup, because the environment sets them: ${secretsInEnvironment.join(", ")}`,
    );
  }
});

/** Copies objects while the server writes to them, so that little is left to copy while writes are held back. */
async function copyEarly(copies: ObjectCopies): Promise<void> {
  for (let pass = 1; pass <= EARLY_PASSES_MAX; pass++) {
    const { files, bytes } = await copies.update();
    console.log(`objects: ${files} files copied, ${formatBytes(bytes)}`);
    if (files <= SHORT_PASS_FILES && bytes <= SHORT_PASS_BYTES) return;
  }
}

/** Holds back writes while it begins the database's snapshot and completes the copies: both are of the same moment. */
async function takeSnapshot(
  snapshot: pg.Client,
  copies: ObjectCopies,
  databaseUrl: string,
): Promise<void> {
  const pause = await connectDatabase(databaseUrl);
  try {
    const beganAtMs = performance.now();
    const { files } = await withWritePause(pause, async (signal) => {
      await beginSnapshot(snapshot);
      return copies.update(signal);
    });
    const pausedMs = Math.ceil(performance.now() - beganAtMs);
    console.log(
      `objects: ${copies.list().length} files in all, ${files} copied while writes waited for ${pausedMs} ms`,
    );
  } finally {
    await pause.end();
  }
}

function reportProgress(archive: ArchiveWriter): Disposable {
  const timer = setInterval(() => {
    console.log(`archive: ${formatBytes(sumSizes(archive))} before compression`);
  }, PROGRESS_INTERVAL_MS);
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

interface BackupContents {
  snapshot: pg.Client;
  copies: ObjectCopies;
  secretsInEnvironment: string[];
}

async function archiveSnapshot(
  archive: ArchiveWriter,
  { snapshot, copies, secretsInEnvironment }: BackupContents,
): Promise<void> {
  const createdAt = new Date().toISOString();
  const tables = await archiveTables(snapshot, archive);
  const rows = tables.reduce((sum, table) => sum + table.rows, 0);
  console.log(`database: ${rows} rows of ${tables.length} tables`);
  for (const name of copies.list()) await archive.addFile(`objects/${name}`, copies.locate(name));
  await archive.finish({
    format: BACKUP_FORMAT,
    version: packageJson.version,
    createdAt,
    ...(await describeDatabase(snapshot)),
    tables,
    secretsInEnvironment,
  });
}

function sumSizes({ files }: ArchiveWriter): number {
  return files.reduce((sum, { size }) => sum + size, 0);
}

/** @returns the path of the file to write: in a directory, one with the time as its name. */
async function findTarget(path: string): Promise<string> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory()) {
    const time = new Date().toISOString().replaceAll(":", "-").replace(/\.\d+/, "");
    return join(path, `underpass-${time}.tar.gz`);
  }
  if (found) throw new StartError(`${path} exists: name another file, or a directory`);
  if (!(await stat(dirname(path)).catch(() => undefined))) {
    throw new StartError(`${dirname(path)} does not exist: create it first`);
  }
  return path;
}

async function createPartialDir(path: string): Promise<string> {
  try {
    await mkdir(path, { mode: 0o700 });
    return path;
  } catch (error) {
    if (getErrorCode(error) !== "EEXIST") throw error;
    throw new StartError(
      `${path} exists: another backup is writing it, or one was killed: remove it in that case`,
    );
  }
}
