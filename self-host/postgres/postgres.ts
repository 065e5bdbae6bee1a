/**
 * The embedded PostgreSQL: real binaries from an npm package, with a cluster in `DATA_DIR/postgres` that only this
 * machine can reach, with a password. The server uses its socket, which takes less CPU time than its port; an operator's
 * psql and backups use the port.
 */
import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { chown, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { SupervisedProcess, CHILD_STOP_MAX_MS, endWithThisProcess } from "../processes/child.ts";
import { StartError } from "../errors.ts";
import { SOCKET_PATH_MAX_BYTES, writePrivateFile } from "../files.ts";
import type { Log } from "../log.ts";
import { findUsablePort } from "../processes/ports.ts";
import { type OsUser, findPostgresAccount } from "./os-user.ts";
import { type Binaries, findBinaries } from "./binaries.ts";
import { getCommandLine, stopStaleProcess } from "../processes/processes.ts";
import { getErrorCode, getErrorMessage } from "../../shared/error-message.ts";

const USER = "underpass";
/** For both pools of the gateway, the start itself, and a few sessions of an operator's psql. */
const MAX_CONNECTIONS = 40;

export interface EmbeddedPostgres {
  /** Contains the password: must not be logged. */
  url: string;
  child: SupervisedProcess;
  stop(): Promise<void>;
}

/** @throws StartError when PostgreSQL can't run on this machine. */
export async function startPostgres(
  dataDir: string,
  password: string,
  log: Log,
): Promise<EmbeddedPostgres> {
  const clusterDir = join(dataDir, "postgres");
  const account = await findPostgresAccount(clusterDir);
  const binaries = await findBinaries(account);
  const stalePid = await stopOrphanedPostgres(clusterDir);
  await initializeCluster(clusterDir, binaries, password, account);

  for (let attempt = 1; ; attempt++) {
    try {
      return await launch(clusterDir, { binaries, password, account, stalePid }, log);
    } catch (error) {
      if (error instanceof StartError) throw error;
      if (attempt === START_MAX_ATTEMPTS) {
        throw new StartError(
          `the embedded PostgreSQL did not start: ${getErrorMessage(error)}; its own messages are in the log above`,
        );
      }
      await sleep(START_RETRY_MS);
    }
  }
}

/** Another program may have taken the port, and processes of a killed PostgreSQL take a little time to exit. */
const START_MAX_ATTEMPTS = 4;
const START_RETRY_MS = 500;

/**
 * The data directory, as the child's fourth descriptor. PostgreSQL's user opens it by this path, because it may not
 * be allowed to traverse the directories above, which belong to root.
 */
const DIRECTORY_DESCRIPTOR_PATH = "/proc/self/fd/3";

interface LaunchOptions {
  binaries: Binaries;
  password: string;
  /** The user of the operating system that PostgreSQL runs as; undefined: this process's own. */
  account: OsUser | undefined;
  /** A process that is not PostgreSQL, but has the id of one that was killed. */
  stalePid: number | undefined;
}

async function launch(
  clusterDir: string,
  { binaries, password, account, stalePid }: LaunchOptions,
  log: Log,
): Promise<EmbeddedPostgres> {
  const port = await findUsablePort(LOOPBACK, 0);
  const url = formatUrl(port, password, getSocketHost(clusterDir, port));
  const settings = {
    cluster_name: getClusterName(clusterDir),
    listen_addresses: LOOPBACK,
    port: String(port),
    // The data directory, which is PostgreSQL's working directory.
    unix_socket_directories: ".",
    max_connections: String(MAX_CONNECTIONS),
    timezone: "UTC",
    // A failed query is reported to its client; only failures of PostgreSQL itself belong in the server's log.
    log_min_messages: "fatal",
    log_min_error_statement: "panic",
  };
  const directory = await open(clusterDir);
  const child = new SupervisedProcess(
    {
      name: "postgres",
      command: binaries.postgres,
      args: [
        "-D",
        account ? DIRECTORY_DESCRIPTOR_PATH : clusterDir,
        ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
      ],
      spawnOptions: {
        ...account,
        cwd: "/",
        env: {
          ...{ PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" },
          // PostgreSQL takes it for the process that has started it, and starts anyway (its pg_ctl uses this).
          ...(stalePid !== undefined && { PG_GRANDPARENT_PID: String(stalePid) }),
        },
      },
      descriptor: directory.fd,
      probe: () => checkConnection(url),
      // After a loss of power, it may have to repeat a gigabyte of changes from a slow disk. If it were stopped, it would begin again.
      isStarting: (error) => getErrorCode(error) === CANNOT_CONNECT_NOW,
      onLine: (line) => {
        if (isWorthLogging(line)) log.forward("postgres", "warn", line);
      },
      stopSignal: "SIGINT",
      stopMaxMs: CHILD_STOP_MAX_MS,
      signalOnParentExit: "SIGINT",
    },
    log,
  );
  try {
    await child.start();
  } catch (error) {
    await directory.close();
    throw error;
  }
  return {
    url,
    child,
    async stop() {
      await child.stop();
      await directory.close();
    },
  };
}

/**
 * @param dataDir of a running server.
 * @returns the URL of its PostgreSQL, with the password; undefined when none runs.
 */
export async function findPostgresUrl(
  dataDir: string,
  password: string,
): Promise<string | undefined> {
  const pidFile = await readFile(join(dataDir, "postgres", PID_FILE), "utf8").catch(() => "");
  const port = Number(pidFile.split("\n")[PORT_LINE]);
  return port > 0 ? formatUrl(port, password) : undefined;
}

/** PostgreSQL writes its process id into the first line, and its port into the fourth. */
const PID_FILE = "postmaster.pid";
const PORT_LINE = 3;

const LOOPBACK = "127.0.0.1";

function formatUrl(port: number, password: string, host = LOOPBACK): string {
  return `postgresql://${USER}:${encodeURIComponent(password)}@${host}:${port}/postgres`;
}

/** For the host of a URL, the directory of the socket; the loopback address if the path of the socket is too long. */
function getSocketHost(clusterDir: string, port: number): string {
  const path = join(clusterDir, `.s.PGSQL.${port}`);
  return Buffer.byteLength(path) <= SOCKET_PATH_MAX_BYTES
    ? encodeURIComponent(clusterDir)
    : LOOPBACK;
}

/**
 * While it starts or stops, PostgreSQL logs each rejected connection, with details. Those are connections of our own
 * probe. After a kill -9, each of its processes logs that it ends.
 */
const EXPECTED_LINE = new RegExp(
  [
    "the database system is (starting up|not yet accepting|shutting down|in recovery)",
    "DETAIL: +(Consistent recovery state|Recovery snapshot|Hot standby mode)",
    "terminating connection due to unexpected postmaster exit",
  ].join("|"),
);

export function isWorthLogging(line: string): boolean {
  return !EXPECTED_LINE.test(line);
}

/** PostgreSQL's codes for a password that it does not accept, and for a connection while it starts or recovers. */
const INVALID_PASSWORD = "28P01";
const CANNOT_CONNECT_NOW = "57P03";

/** @throws StartError when no further attempt can succeed. */
async function checkConnection(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on("error", () => {});
  await client.connect().catch((error: unknown) => {
    if (getErrorCode(error) !== INVALID_PASSWORD) throw error;
    throw new StartError(
      "DATA_DIR: its secrets.json is not the file that this database was set up with: restore it from a backup",
    );
  });
  await client.end();
}

/** Creates the cluster under another name and renames it, so that an interrupted start leaves no partial cluster. */
async function initializeCluster(
  clusterDir: string,
  { initdb }: Binaries,
  password: string,
  account: OsUser | undefined,
): Promise<void> {
  if (await stat(clusterDir).catch(() => undefined)) return;
  const fresh = `${clusterDir}.new`;
  const passwordFile = join(fresh, "..", "postgres.password");
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { mode: 0o700 });
  await writePrivateFile(passwordFile, password);
  if (account) {
    await chown(fresh, account.uid, account.gid);
    await chown(passwordFile, account.uid, account.gid);
  }
  const [cluster, secret] = await Promise.all([open(fresh), open(passwordFile)]);
  try {
    const child = spawn(
      initdb,
      [
        ...["-D", account ? DIRECTORY_DESCRIPTOR_PATH : fresh],
        ...[`--username=${USER}`, "--auth=scram-sha-256", "--pwfile=/dev/stdin"],
        ...["--encoding=UTF8", "--locale=C"],
        ...["--locale-provider=builtin", "--builtin-locale=C.UTF-8"],
      ],
      { ...account, cwd: "/", stdio: [secret.fd, "ignore", "pipe", cluster.fd] },
    );
    // A later start would create its cluster in the same directory.
    endWithThisProcess(child, "SIGKILL");
    let stderr = "";
    child.stderr?.on("data", (text: Buffer) => (stderr += text.toString()));
    const [code] = (await once(child, "close")) as [number | null];
    if (code !== 0) throw new Error(stderr || `initdb exited with code ${code}`);
  } catch (error) {
    throw new StartError(
      `the database can't be created in ${clusterDir}: ${getErrorMessage(error)}`,
    );
  } finally {
    await Promise.all([cluster.close(), secret.close(), rm(passwordFile, { force: true })]);
  }
  await rename(fresh, clusterDir);
}

/**
 * After a `kill -9` of the server, its PostgreSQL keeps running. If that was killed as well, its id is still in its file, and
 * may be that of another process now: in a container, even of a thread of this one.
 * @returns the id of such a process, for which PostgreSQL would refuse to start.
 */
async function stopOrphanedPostgres(clusterDir: string): Promise<number | undefined> {
  const pidFile = await readFile(join(clusterDir, PID_FILE), "utf8").catch(() => "");
  const pid = Number(pidFile.split("\n")[0]);
  if (!(pid > 0)) return undefined;
  await stopStaleProcess(pid, getClusterName(clusterDir), "SIGINT");
  const commandLine = getCommandLine(pid);
  // An operator may have started PostgreSQL on the directory. Those of other servers have a name.
  const mayBePostgres =
    commandLine?.includes("postgres") && !commandLine.includes(CLUSTER_NAME_START);
  return commandLine === undefined || mayBePostgres ? undefined : pid;
}

const CLUSTER_NAME_START = "underpass-";

/** Distinguishes the process of this cluster from those of other servers on the machine. */
function getClusterName(clusterDir: string): string {
  return `${CLUSTER_NAME_START}${createHash("sha256").update(clusterDir).digest("hex").slice(0, 12)}`;
}
