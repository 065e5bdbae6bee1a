/** Keeps processes from changing a file at the same time. */
import { open, rm, stat } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { getErrorCode } from "../../shared/error-message.ts";

/** A change takes milliseconds: a lock that stays for longer was left behind by a process that was killed. */
const LOCK_MAX_MS = 2_000;
const RETRY_MS = 20;
/** Windows reports EPERM while a file is being deleted. */
const TAKEN_CODES = new Set(["EEXIST", "EPERM"]);

/** @param path of the file; that of its lock ends with `.lock`. */
export async function withFileLock<Result>(
  path: string,
  change: () => Promise<Result>,
): Promise<Result> {
  const lock = `${path}.lock`;
  await acquire(lock);
  try {
    return await change();
  } finally {
    await rm(lock, { force: true });
  }
}

/**
 * Waits while other processes have the lock one after another, and removes one that does not change. Its age would not do: the
 * clock of a network file system may be another one.
 */
async function acquire(lock: string): Promise<void> {
  let watched: string | undefined;
  let endsAtMs = 0;
  for (;;) {
    const error = await tryToCreate(lock);
    if (error === null) return;
    const found = await identify(lock);
    if (found !== watched) {
      watched = found;
      endsAtMs = performance.now() + LOCK_MAX_MS;
    } else if (performance.now() >= endsAtMs) {
      // There is no lock: this user may not create one.
      if (found === "") throw error;
      await rm(lock, { force: true });
    }
    await delay(RETRY_MS);
  }
}

/** @returns null when the file was created, and the error when it may exist. @throws every other error. */
async function tryToCreate(path: string): Promise<Error | null> {
  try {
    await (await open(path, "wx")).close();
    return null;
  } catch (error) {
    if (error instanceof Error && TAKEN_CODES.has(getErrorCode(error) ?? "")) return error;
    throw error;
  }
}

/** @returns a text that differs for each file that is created at the path; empty while there is none. */
async function identify(path: string): Promise<string> {
  const found = await stat(path).catch(() => null);
  return found === null ? "" : `${found.ino} ${found.mtimeMs}`;
}
