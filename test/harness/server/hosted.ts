/**
 * The Worker with the configuration of the hosted service: the bundle in workerd with settings only and without a
 * gateway for mail. Its database is a PostgreSQL of its own, behind a gateway that speaks Neon's protocol.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile, rm } from "node:fs/promises";
import { request } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import pg from "pg";
import { openDataDir, type DataDir } from "../../../self-host/data-dir.ts";
import { startGateway, type Gateway } from "../../../self-host/gateway/gateway.ts";
import { connectDatabase, migrate } from "../../../self-host/postgres/migrate.ts";
import { startPostgres } from "../../../self-host/postgres/postgres.ts";
import { loadSecrets, type Secrets } from "../../../self-host/secrets.ts";
import { buildConfiguration } from "../../../self-host/workerd/configuration.ts";
import { Settings, type Config } from "../../../workers/config/config.ts";
import { encrypt } from "../../../workers/identity/encryption.ts";
import { waitUntil } from "./api.ts";
import { createPreparedDir, silentLog } from "../directories.ts";
import { reservePort } from "../ports.ts";

export interface HostedService extends AsyncDisposable {
  url: string;
  sql<Row>(text: string, values?: unknown[]): Promise<Row[]>;
  /** Runs the scheduled job, as the cron trigger does. */
  runCron(): Promise<void>;
  /** The Worker's log so far. */
  output(): string;
  /** Adds a mail to the outbox, as a change does. */
  queueMail(mail: { to: string; subject: string; text: string; html: string }): Promise<void>;
}

export interface HostedOptions {
  settings: Record<string, string>;
  /** A certificate in PEM, trusted in addition to those that browsers trust. */
  trusted?: string;
  /** The storage of an earlier service that has ended; by default a new one. */
  storage?: HostedStorage;
}

/** A database behind a gateway, and directories. */
export interface HostedStorage extends AsyncDisposable {
  dataDir: DataDir;
  secrets: Secrets;
  database: pg.Client;
  gateway: Gateway;
}

export async function startHostedStorage(): Promise<HostedStorage> {
  await using undo = new AsyncDisposableStack();
  const path = await createPreparedDir();
  undo.defer(() => rm(path, { recursive: true, force: true }));
  const dataDir = await openDataDir(path);
  const secrets = await loadSecrets(path, {});
  const postgres = await startPostgres(path, secrets.postgres, silentLog);
  undo.defer(() => postgres.stop());
  const database: pg.Client = await connectDatabase(postgres.url);
  undo.defer(() => database.end());
  await migrate(database);
  const gateway = await startGateway({
    socketPath: undefined,
    databaseUrl: postgres.url,
    secret: secrets.gateway,
    mailDir: dataDir.mailDir,
    smtpServer: undefined,
    log: silentLog,
  });
  undo.defer(() => gateway.close());
  const owned = undo.move();
  return {
    dataDir,
    secrets,
    database,
    gateway,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export async function startHosted({
  settings,
  trusted = "",
  storage,
}: HostedOptions): Promise<HostedService> {
  await using undo = new AsyncDisposableStack();
  const { dataDir, secrets, database, gateway } = storage ?? undo.use(await startHostedStorage());
  const port = await reservePort();
  const bindings: Record<string, string> = {
    HOSTED: "true",
    API_HOSTS: "127.0.0.1",
    SERVICE_DOMAIN: "tunnels.example",
    AUTH_RATE_LIMIT: "off",
    DATABASE_URL: gateway.databaseUrl,
    GATEWAY_SECRET: secrets.gateway,
    ENCRYPTION_KEY: secrets.ENCRYPTION_KEY,
    JWT_PRIVATE_KEY: secrets.JWT_PRIVATE_KEY,
    TOKEN_SIGNING_KEY: secrets.TOKEN_SIGNING_KEY,
    ...settings,
  };
  const controlSocket = join(dataDir.runDir, `control-${port}.sock`);
  const text = await buildConfiguration({
    dataDir,
    publicAddress: `127.0.0.1:${port}`,
    apiSocket: join(dataDir.runDir, `api-${port}.sock`),
    controlSocket,
    objectsControlSocket: join(dataDir.runDir, `objects-control-${port}.sock`),
    probeSocket: join(dataDir.runDir, `probe-${port}.sock`),
    frontControlSocket: join(dataDir.runDir, `front-${port}.sock`),
    gatewayAddress: gateway.address,
    allowPrivateFetch: true,
    bindingNames: Object.keys(bindings),
  });
  const configPath = join(dataDir.runDir, "hosted.capnp");
  await writeFile(configPath, toHostedConfiguration(text, trusted));
  const workerd = createRequire(import.meta.url).resolve("workerd/bin/workerd");
  const child = spawn(workerd, ["serve", configPath], { env: bindings });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  }
  undo.defer(() => end(child));
  const url = `http://127.0.0.1:${port}`;
  await waitUntil(() =>
    fetch(`${url}/health`).then(
      ({ ok }) => ok,
      () => child.exitCode !== null,
    ),
  );
  if (child.exitCode !== null) throw new Error(output);

  const owned = undo.move();
  const config = Settings.parse(bindings) as unknown as Config;
  const sql = async (query: string, values: unknown[] = []) =>
    (await database.query(query, values)).rows;
  return {
    url,
    sql: sql as HostedService["sql"],
    runCron: () => control(controlSocket, "/cron"),
    output: () => output,
    async queueMail(mail) {
      const payload = { sealed: await encrypt(config, "mail", JSON.stringify(mail)) };
      await sql("insert into outbox (kind, payload) values ('mail', $1::jsonb)", [
        JSON.stringify(payload),
      ]);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** Removes the gateway for mail, and trusts the certificate of a test. */
function toHostedConfiguration(text: string, trusted: string): string {
  const [mailGateway = ""] = /^.*"MAIL_GATEWAY".*\n/m.exec(text) ?? [];
  const trust = trusted === "" ? "" : `, trustedCertificates = [${JSON.stringify(trusted)}]`;
  return text
    .replaceAll(mailGateway, "")
    .replace("trustBrowserCas = true", `trustBrowserCas = true${trust}`);
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

function control(socketPath: string, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    request({ socketPath, method: "POST", path }, (response) => {
      response.resume().on("end", resolve);
    })
      .on("error", reject)
      .end();
  });
}
