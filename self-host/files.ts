/** Files and directories that hold secrets: made for their owner alone, and replaced whole. */
import { chmod, chown, mkdir, rename, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** One that exists already loses the rights of others. What `letPass` gave stays: a server may run on it. */
export async function privateDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  const { mode } = await stat(path);
  if ((mode & 0o067) !== 0) await chmod(path, mode & 0o710);
}

/** A reader sees the old content or the new, after a crash too, and nobody else sees either. */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const fresh = `${path}.${process.pid}.new`;
  await writeFile(fresh, content, { mode: 0o600, flush: true });
  await rename(fresh, path);
}

export interface Account {
  uid: number;
  gid: number;
}

/** Lets a group pass through a directory without seeing what is in it. */
export async function letPass(path: string, { gid }: Account): Promise<void> {
  await chown(path, process.getuid?.() ?? 0, gid);
  await chmod(path, 0o710);
}

/** The first directory on the way to `path` that the account may not pass, or undefined. */
export async function blockedAt(path: string, account: Account): Promise<string | undefined> {
  for (let dir = path; ; dir = dirname(dir)) {
    if (!mayPass(await stat(dir), account)) return dir;
    if (dir === dirname(dir)) return undefined;
  }
}

function mayPass(
  { mode, uid, gid }: { mode: number; uid: number; gid: number },
  account: Account,
): boolean {
  if (uid === account.uid) return (mode & 0o100) !== 0;
  if (gid === account.gid) return (mode & 0o010) !== 0;
  return (mode & 0o001) !== 0;
}
