/** Opens the data directory, secrets and database of a self-hosted server, for `npm start` and `npm run dev`. */
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { type DataDir, openDataDir } from "./data-dir.ts";
import { type Gateway, startGateway } from "./gateway/gateway.ts";
import { assertSameKeys, createSetupCode, type SetupCode } from "./postgres/database-setup.ts";
import { StartError } from "./errors.ts";
import type { Log } from "./log.ts";
import { hasObjects, removeUnusedObjects } from "./object-files.ts";
import type { SupervisedProcess } from "./processes/child.ts";
import { connectDatabase, migrate } from "./postgres/migrate.ts";
import { startPostgres } from "./postgres/postgres.ts";
import { computeFingerprints, loadSecrets, recordUsedKeys, type Secrets } from "./secrets.ts";
import type { ServerSettings } from "./settings.ts";

export interface BackendServices {
  dataDir: DataDir;
  secrets: Secrets;
  gateway: Gateway;
  /** Contains the password: must not be logged. */
  databaseUrl: string;
  /** undefined for a database of the operator's own. */
  postgres: SupervisedProcess | undefined;
  /** undefined when the owner's account exists. */
  setup: SetupCode | undefined;
}

/**
 * Registers in `cleanup` how to stop everything that it starts, in reverse order.
 *
 * @param gatewayOn a port for wrangler, whose Worker can't reach a socket.
 * @throws StartError
 */
export async function startBackendServices(
  settings: ServerSettings,
  log: Log,
  cleanup: AsyncDisposableStack,
  gatewayOn: "socket" | "port",
): Promise<BackendServices> {
  const dataDir = await openDataDir(settings.dataDir);
  cleanup.defer(() => dataDir.release());
  if (settings.databaseUrl === undefined) await assertNoLostDatabase(dataDir);
  const secrets = await loadSecrets(dataDir.path, settings.secrets);

  let databaseUrl = settings.databaseUrl;
  let postgres: SupervisedProcess | undefined;
  if (databaseUrl === undefined) {
    const embedded = await startPostgres(dataDir.path, secrets.postgres, log);
    cleanup.defer(() => embedded.stop());
    databaseUrl = embedded.url;
    postgres = embedded.child;
  }
  const setup = await prepareDatabase(databaseUrl, secrets, log);
  await recordUsedKeys(dataDir.path, secrets);
  // Only now is it sure that these keys and this version are the right ones for the data.
  const removed = await removeUnusedObjects(dataDir.objectsDir);
  if (removed > 0) log.info(`objects: ${removed} unused files removed`);

  const gateway = await startGateway({
    socketPath: gatewayOn === "socket" ? join(dataDir.socketsDir, GATEWAY_SOCKET) : undefined,
    databaseUrl,
    secret: secrets.gateway,
    mailDir: dataDir.mailDir,
    smtpServer: settings.smtpServer,
    log,
  });
  cleanup.defer(() => gateway.close());
  return { dataDir, secrets, gateway, databaseUrl, postgres, setup };
}

const GATEWAY_SOCKET = "gateway.sock";

/** @throws StartError instead of creating a database without the accounts and tokens of the users that the directory had. */
async function assertNoLostDatabase({ path, objectsDir }: DataDir): Promise<void> {
  const hasDatabase = await stat(join(path, "postgres")).catch(() => undefined);
  if (hasDatabase || !(await hasObjects(objectsDir))) return;
  throw new StartError(
    `DATA_DIR: ${path} has the live state of a server, but no database: set DATABASE_URL if that server did, or restore a backup into an empty directory`,
  );
}

async function prepareDatabase(
  databaseUrl: string,
  secrets: Secrets,
  log: Log,
): Promise<SetupCode | undefined> {
  const client = await connectDatabase(databaseUrl);
  try {
    const applied = await migrate(client);
    if (applied > 0) log.info(`database: ${applied} migrations applied`);
    await assertSameKeys(client, await computeFingerprints(secrets));
    return await createSetupCode(client);
  } finally {
    await client.end();
  }
}

/** All objects share one thread, and each shard reads unknown names from the database in batches of its own. */
const DIRECTORY_SHARDS = "1";

/** The variables and secrets of the Worker, by the names of workers/env.ts. */
export function buildWorkerBindings(
  settings: ServerSettings,
  { secrets, gateway, setup }: BackendServices,
  publicPort: number,
): Record<string, string> {
  return {
    ...settings.worker,
    DIRECTORY_SHARDS,
    PUBLIC_PORT: String(publicPort),
    ENCRYPTION_KEY: secrets.ENCRYPTION_KEY,
    JWT_PRIVATE_KEY: secrets.JWT_PRIVATE_KEY,
    TOKEN_SIGNING_KEY: secrets.TOKEN_SIGNING_KEY,
    RELAY_SECRET: secrets.RELAY_SECRET,
    DATABASE_URL: gateway.databaseUrl,
    GATEWAY_SECRET: secrets.gateway,
    MAIL_DELIVERY: settings.smtpServer ? "smtp" : "files",
    ...(setup && { SETUP_CODE_HASH: setup.hash }),
  };
}
