/** The directory with all data of a self-hosted server, and the lock file that lets one server at a time use it. */
import { link, mkdtemp, readFile, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import { StartError } from "./errors.ts";
import { createPrivateDirectory, SOCKET_PATH_MAX_BYTES, writePrivateFile } from "./files.ts";
import { parseJson } from "../shared/json.ts";
import { getErrorCode, getErrorMessage } from "../shared/error-message.ts";
import { getCommandLine, stopStaleProcess } from "./processes/processes.ts";

export interface DataDir {
  path: string;
  /** Configuration of the running server. */
  runDir: string;
  /** For sockets that only this user can reach, with names of at most `SOCKET_NAME_MAX_BYTES`. */
  socketsDir: string;
  objectsDir: string;
  mailDir: string;
  /** Stores the process id, so that the next start can stop this workerd if this server is killed. */
  recordWorkerd(pid: number): Promise<void>;
  release(): Promise<void>;
}

/** Locks of earlier versions have no command line. */
const LockFile = z.object({
  pid: z.int(),
  commandLine: z.string().optional(),
  workerd: z.int().optional(),
});
type LockFile = z.output<typeof LockFile>;

/** @throws StartError when the directory can't be used, or another server uses it. */
export async function openDataDir(path: string): Promise<DataDir> {
  const runDir = join(path, "run");
  const objectsDir = join(path, "objects");
  try {
    await assertRestored(path);
    for (const dir of [path, runDir, objectsDir]) await createPrivateDirectory(dir);
    const lockPath = join(runDir, LOCK_FILE);
    const lock: LockFile = { pid: process.pid, commandLine: getCommandLine(process.pid) };
    await acquireLock(lockPath, lock);
    return {
      path,
      runDir,
      socketsDir: await createSocketsDir(runDir),
      objectsDir,
      mailDir: join(path, "mail"),
      recordWorkerd: (workerd) => writePrivateFile(lockPath, JSON.stringify({ ...lock, workerd })),
      release: () => rm(lockPath, { force: true }),
    };
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(
      `DATA_DIR: ${path} can't be used: ${getErrorMessage(error)}; set it to a directory that this user may write to`,
    );
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
  const text = await readFile(join(path, "run", LOCK_FILE), "utf8").catch(() => "");
  const lock = parseLock(text);
  return lock && isServer(lock) ? lock.pid : undefined;
}

const LOCK_FILE = "server.json";

/** `link` fails when the name exists, so only one of two servers acquires the lock. */
async function acquireLock(lockPath: string, lock: LockFile): Promise<void> {
  const ownPath = `${lockPath}.${process.pid}`;
  await writePrivateFile(ownPath, JSON.stringify(lock));
  try {
    await link(ownPath, lockPath);
  } catch (error) {
    if (getErrorCode(error) !== "EEXIST") throw error;
    await replaceStaleLock(ownPath, lockPath);
  } finally {
    await rm(ownPath, { force: true });
  }
}

/** @throws StartError when the lock is not stale, or another start replaces it at the same time. */
async function replaceStaleLock(ownPath: string, lockPath: string): Promise<void> {
  try {
    await removeStaleLock(lockPath);
    await link(ownPath, lockPath);
  } catch (error) {
    // It was removed or replaced between two of these steps.
    if (!["EEXIST", "ENOENT"].includes(getErrorCode(error) ?? "")) throw error;
    throw createStartingError();
  }
}

function createStartingError(): StartError {
  return new StartError(
    "DATA_DIR: another server is starting with this directory: stop it, or set DATA_DIR to another one",
  );
}

/** Removes the lock of a server that was stopped with `kill -9`, and stops its workerd if that still runs. */
async function removeStaleLock(lockPath: string): Promise<void> {
  const text = await readFile(lockPath, "utf8");
  const previous = parseLock(text);
  if (previous && previous.pid !== process.pid && isServer(previous)) {
    throw new StartError(
      `DATA_DIR: in use by the server with process id ${previous.pid}: stop it, or set DATA_DIR to another directory`,
    );
  }
  if (previous?.workerd !== undefined)
    await stopStaleProcess(previous.workerd, "workerd serve", "SIGKILL");
  const stalePath = `${lockPath}.${process.pid}.stale`;
  await rename(lockPath, stalePath);
  const isSame = (await readFile(stalePath, "utf8")) === text;
  if (!isSame) await link(stalePath, lockPath);
  await rm(stalePath, { force: true });
  if (!isSame) throw createStartingError();
}

/** The system reuses process ids, so the command line is compared: as the system reports it, relative paths included. */
function isServer({ pid, commandLine = "self-host/" }: LockFile): boolean {
  return getCommandLine(pid)?.includes(commandLine) ?? false;
}

function parseLock(text: string): LockFile | undefined {
  return LockFile.safeParse(parseJson(text)).data;
}
