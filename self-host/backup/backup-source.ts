/** The data of a server that is to be copied, while the server runs or while it is stopped. */
import { join } from "node:path";
import { findServer, openDataDir } from "../data-dir.ts";
import { StartError } from "../errors.ts";
import type { Log } from "../log.ts";
import { findPostgresUrl, startPostgres } from "../postgres/postgres.ts";
import { readStoredSecrets } from "../secrets.ts";
import type { ServerSettings } from "../settings.ts";

interface BackupSource {
  objectsDir: string;
  databaseUrl: string;
}

/**
 * While no server runs, starts its PostgreSQL, and prevents a start of the server until `cleanup`.
 *
 * @throws StartError
 */
export async function openBackupSource(
  settings: Pick<ServerSettings, "dataDir" | "databaseUrl">,
  log: Log,
  cleanup: AsyncDisposableStack,
): Promise<BackupSource> {
  const { dataDir } = settings;
  const secrets = await readStoredSecrets(dataDir);
  if (!secrets) {
    throw new StartError(
      `DATA_DIR: ${dataDir} has no data of a server; set DATA_DIR to the directory that the server uses`,
    );
  }
  const objectsDir = join(dataDir, "objects");
  const serverPid = await findServer(dataDir);
  if (serverPid !== undefined) {
    const databaseUrl = settings.databaseUrl ?? (await findPostgresUrl(dataDir, secrets.postgres));
    if (databaseUrl === undefined) {
      throw new StartError(
        `the server with process id ${serverPid} is starting or stopping: run the backup again when it has done so`,
      );
    }
    return { objectsDir, databaseUrl };
  }
  const opened = await openDataDir(dataDir);
  cleanup.defer(() => opened.release());
  if (settings.databaseUrl !== undefined) {
    return { objectsDir, databaseUrl: settings.databaseUrl };
  }
  const postgres = await startPostgres(dataDir, secrets.postgres, log);
  cleanup.defer(() => postgres.stop());
  return { objectsDir, databaseUrl: postgres.url };
}
