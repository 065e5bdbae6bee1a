/** Keeps processes from changing a file at the same time. */
import { open, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** A change takes milliseconds: a lock that is older was left behind by a process that was killed. */
const LOCK_MAX_MS = 2_000;
const RETRY_MS = 20;

/** @param path of the file; that of its lock ends with `.lock`. */
export async function withFileLock<Result>(
  path: string,
  change: () => Promise<Result>,
): Promise<Result> {
  const lock = `${path}.lock`;
  const endsAtMs = performance.now() + LOCK_MAX_MS;
  while (!(await createFile(lock)) && performance.now() < endsAtMs) await delay(RETRY_MS);
  try {
    return await change();
  } finally {
    await rm(lock, { force: true });
  }
}

/** @returns false when it exists. Windows reports EPERM while it is being deleted. */
async function createFile(path: string): Promise<boolean> {
  try {
    await (await open(path, "wx")).close();
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST" || code === "EPERM") return false;
    throw error;
  }
}
