/**
 * `npm run restore -- --from FILE --data-dir DIRECTORY`: creates the data directory of a server from a backup. It verifies the
 * whole file before it writes, and a server refuses the directory until everything is in it.
 */
import { createWriteStream, readdirSync, renameSync } from "node:fs";
import { mkdir, readdir, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { UNFINISHED_RESTORE } from "../data-dir.ts";
import { StartError } from "../errors.ts";
import { createPrivateDirectory } from "../files.ts";
import { connectDatabase, migrate, readMigrations } from "../postgres/migrate.ts";
import { startPostgres } from "../postgres/postgres.ts";
import { readStoredSecrets } from "../secrets.ts";
import { readArchive, verifyArchive } from "./archive-reader.ts";
import { syncDirectory } from "./archive-writer.ts";
import { stderrLog, parseOptions, removeAtExit, resolvePath, runCommand } from "./command.ts";
import { RowLoader } from "./database-rows.ts";
import {
  BACKUP_FORMAT,
  type Manifest,
  MANIFEST_PATH,
  parsePartPath,
  SECRETS_PATH,
} from "./manifest.ts";
import { restoreAlarms } from "./object-copies.ts";
import { getErrorCode } from "../../shared/error-message.ts";

const USAGE = "npm run restore -- --from FILE --data-dir DIRECTORY";

await runCommand("restore", async () => {
  const options = parseOptions(["from", "data-dir"], USAGE);
  const [from, dataDir] = [resolvePath(options.from), resolvePath(options["data-dir"])];
  await assertEmpty(dataDir);
  const manifest = await verifyArchive(from);
  assertKnownSchema(manifest);
  console.log(
    `verified: version ${manifest.version} of ${manifest.createdAt}, ${manifest.files.length} files`,
  );

  await createPrivateDirectory(dataDir);
  const partial = join(dataDir, UNFINISHED_RESTORE);
  await mkdir(partial, { mode: 0o700 });
  using _partial = removeAtExit(partial);
  await mkdir(join(partial, "objects"), { mode: 0o700 });
  await restoreRows(from, manifest, partial);
  await restoreObjects(from, partial);
  await moveInto(dataDir, partial);
  console.log(`restored to ${dataDir}: start the server with DATA_DIR=${dataDir}`);
  if (manifest.secretsInEnvironment.length > 0) {
    console.log(
      `set in the environment, as at the first server: ${manifest.secretsInEnvironment.join(", ")}`,
    );
  }
});

async function assertEmpty(dataDir: string): Promise<void> {
  let names: string[];
  try {
    names = await readdir(dataDir);
  } catch (error) {
    if (getErrorCode(error) === "ENOENT") return;
    throw error;
  }
  if (names.length > 0) {
    throw new StartError(
      `${dataDir} is not empty: name a directory that is empty or does not exist`,
    );
  }
}

/** @throws StartError unless this version can create the schema of the backup, which the next start migrates. */
function assertKnownSchema({ format, migrations, version }: Manifest): void {
  const known = new Map(readMigrations().map((one) => [one.folderMillis, one.hash]));
  const newest = Math.max(...known.keys());
  if (format > BACKUP_FORMAT || migrations.some(({ createdAtMs }) => createdAtMs > newest)) {
    throw new StartError(
      `the backup is of version ${version}, which is newer: install that version of Underpass, or a later one`,
    );
  }
  if (migrations.some(({ createdAtMs, hash }) => known.get(createdAtMs) !== hash)) {
    throw new StartError(
      `this version can't create the schema of the backup: install version ${version} of Underpass`,
    );
  }
}

async function restoreRows(from: string, manifest: Manifest, partial: string): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  let loader: RowLoader | undefined;
  for await (const { path, content } of readArchive(from)) {
    const table = parsePartPath(path);
    if (path === SECRETS_PATH) {
      await writePrivate(join(partial, SECRETS_PATH), content);
      loader = await openLoader(manifest, partial, cleanup);
    } else if (table !== undefined) {
      if (!loader) throw new StartError(`${from} has rows before its keys: use an earlier backup`);
      await loader.load(table, content);
    }
  }
  if (!loader) throw new StartError(`${from} has no keys: use an earlier backup`);
  await loader.commit(manifest.sequences);
  const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
  console.log(`database: ${rows} rows of ${manifest.tables.length} tables restored`);
}

/** Creates the database with the schema of the backup. */
async function openLoader(
  { migrations, tables }: Manifest,
  partial: string,
  cleanup: AsyncDisposableStack,
): Promise<RowLoader> {
  const secrets = await readStoredSecrets(partial);
  const postgres = await startPostgres(partial, secrets?.postgres ?? "", stderrLog);
  cleanup.defer(() => postgres.stop());
  const client = await connectDatabase(postgres.url);
  cleanup.defer(() => client.end());
  await migrate(client, Math.max(...migrations.map(({ createdAtMs }) => createdAtMs)));
  const loader = new RowLoader(client, tables);
  await loader.begin();
  return loader;
}

async function restoreObjects(from: string, partial: string): Promise<void> {
  let files = 0;
  for await (const { path, content } of readArchive(from)) {
    if (path === MANIFEST_PATH || !path.startsWith("objects/")) continue;
    await mkdir(dirname(join(partial, path)), { recursive: true, mode: 0o700 });
    await writePrivate(join(partial, path), content);
    files += 1;
  }
  const alarms = await restoreAlarms(join(partial, "objects"));
  console.log(`objects: ${files} files restored, ${alarms} alarms corrected`);
}

async function writePrivate(path: string, content: AsyncIterable<Buffer>): Promise<void> {
  await pipeline(content, createWriteStream(path, { mode: 0o600, flags: "wx", flush: true }));
}

/** A server refuses the directory while the partial one exists, so that it starts with everything or not at all. */
async function moveInto(dataDir: string, partial: string): Promise<void> {
  // In one turn of the event loop, so that no signal removes the partial directory in between.
  for (const name of readdirSync(partial)) renameSync(join(partial, name), join(dataDir, name));
  await syncDirectory(dataDir);
  await rmdir(partial);
  await syncDirectory(dataDir);
}
