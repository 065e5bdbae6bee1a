/** The directory with all data of a self-hosted server, and the lock that lets one server at a time use it. */
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { StartError } from "./errors.ts";
import { createPrivateDirectory, SOCKET_PATH_MAX_BYTES, writePrivateFile } from "./files.ts";
import { parseJson } from "../shared/json.ts";
import { getErrorCode, getErrorMessage } from "../shared/error-message.ts";
import { acquireExclusiveLock } from "./processes/exclusive-lock.ts";
import { getCommandLine, stopStaleProcess } from "./processes/processes.ts";

export interface DataDir {
  path: string;
  /** Configuration of the running server. */
  runDir: string;
  /** For sockets that only this user can reach, with names of at most `SOCKET_NAME_MAX_BYTES`. */
  socketsDir: string;
  objectsDir: string;
  mailDir: string;
  /** The path of workerd's configuration. */
  workerdConfig: string;
  /**
   * Stores the process id, so that the next start can stop this workerd if this server is killed. Where that is impossible, as on a
   * full disk, workerd runs without it.
   */
  recordWorkerd(pid: number): Promise<void>;
  release(): Promise<void>;
}

/** Those of earlier versions have no command line, or no lock. */
const ServerRecord = z.object({
  pid: z.int(),
  commandLine: z.string().optional(),
  /** The server holds the lock while it runs. */
  hasLock: z.boolean().optional(),
  workerd: z.int().optional(),
  /** Not in the data directory, because its path is too long: after a `kill -9`, the next server removes it. */
  socketsDir: z.string().optional(),
});
type ServerRecord = z.output<typeof ServerRecord>;

/** @throws StartError when the directory can't be used, or another server uses it. */
export async function openDataDir(path: string): Promise<DataDir> {
  const runDir = join(path, "run");
  const objectsDir = join(path, "objects");
  try {
    await assertRestored(path);
    for (const dir of [path, runDir, objectsDir]) await createPrivateDirectory(dir);
    const recordPath = join(runDir, RECORD_FILE);
    const unlock = acquireExclusiveLock(join(runDir, LOCK_FILE));
    if (!unlock) throw createInUseError(await findServer(path));
    const workerdConfig = join(runDir, WORKERD_CONFIG);
    const record: ServerRecord = {
      pid: process.pid,
      commandLine: getCommandLine(process.pid),
      hasLock: true,
    };
    let socketsDir = runDir;
    const removeSockets = async () => {
      if (socketsDir !== runDir) await rm(socketsDir, { recursive: true, force: true });
    };
    try {
      await endPrevious(recordPath, workerdConfig);
      socketsDir = await createSocketsDir(runDir);
      if (socketsDir !== runDir) record.socketsDir = socketsDir;
      await writePrivateFile(recordPath, JSON.stringify(record));
    } catch (error) {
      await removeSockets();
      unlock();
      throw error;
    }
    return {
      path,
      runDir,
      socketsDir,
      objectsDir,
      mailDir: join(path, "mail"),
      workerdConfig,
      recordWorkerd: (workerd) =>
        writePrivateFile(recordPath, JSON.stringify({ ...record, workerd })).catch(() => undefined),
      async release() {
        await removeSockets();
        await rm(recordPath, { force: true });
        unlock();
      },
    };
  } catch (error) {
    if (error instanceof StartError) throw error;
    const isFull = ["ENOSPC", "EDQUOT"].includes(getErrorCode(error) ?? "");
    const remedy = isFull
      ? "free some space on its disk"
      : "set it to a directory that this user may write to";
    throw new StartError(`DATA_DIR: ${path} can't be used: ${getErrorMessage(error)}; ${remedy}`);
  }
}

const SOCKET_NAME_MAX_BYTES = 12;

/** @returns a directory that only this user can enter, with a path that is short enough for sockets in it. */
async function createSocketsDir(runDir: string): Promise<string> {
  const longestPath = join(runDir, "x".repeat(SOCKET_NAME_MAX_BYTES));
  if (Buffer.byteLength(longestPath) <= SOCKET_PATH_MAX_BYTES) return runDir;
  return mkdtemp(join(tmpdir(), "underpass-"));
}

/** Contains what a restore has not finished; its removal is the last step of a restore. */
export const UNFINISHED_RESTORE = "restore.partial";

/** @throws StartError when the directory has only a part of a backup. */
async function assertRestored(path: string): Promise<void> {
  const partial = join(path, UNFINISHED_RESTORE);
  if (!(await stat(partial).catch(() => undefined))) return;
  throw new StartError(
    `DATA_DIR: ${partial} is from a restore that was interrupted: empty ${path}, and restore the backup again`,
  );
}

/** @returns the process id of the server that uses the directory. */
export async function findServer(path: string): Promise<number | undefined> {
  const record = await readRecord(join(path, "run", RECORD_FILE));
  return record && isServer(record) ? record.pid : undefined;
}

const LOCK_FILE = "server.lock";
const WORKERD_CONFIG = "workerd.capnp";
/** Describes the server that holds the lock, or that held it last. */
const RECORD_FILE = "server.json";

/**
 * For the holder of the lock. Stops workerd of a server that was stopped with `kill -9`, if it still runs, and removes its
 * sockets.
 * @throws StartError when a server of an earlier version runs, which has no lock.
 */
async function endPrevious(recordPath: string, workerdConfig: string): Promise<void> {
  const previous = await readRecord(recordPath);
  if (!previous) return;
  // A server that had the lock has ended, and another process, or a thread of this one, may have its id now.
  const mayRun = !previous.hasLock && previous.pid !== process.pid;
  if (mayRun && isServer(previous)) throw createInUseError(previous.pid);
  if (previous.workerd !== undefined)
    await stopStaleProcess(previous.workerd, `workerd serve ${workerdConfig}`, "SIGKILL");
  if (previous.socketsDir !== undefined)
    await rm(previous.socketsDir, { recursive: true, force: true });
}

/** @param pid of the server, if it is known. */
function createInUseError(pid: number | undefined): StartError {
  const server = pid === undefined ? "another server" : `the server with process id ${pid}`;
  return new StartError(
    `DATA_DIR: in use by ${server}: stop it, or set DATA_DIR to another directory`,
  );
}

/** The system reuses process ids, so the command line is compared: as the system reports it, relative paths included. */
function isServer({ pid, commandLine = "self-host/" }: ServerRecord): boolean {
  return getCommandLine(pid)?.includes(commandLine) ?? false;
}

/** @returns undefined when there is none. */
async function readRecord(path: string): Promise<ServerRecord | undefined> {
  const text = await readFile(path, "utf8").catch(() => "");
  return ServerRecord.safeParse(parseJson(text)).data;
}
