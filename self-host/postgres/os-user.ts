/** PostgreSQL refuses to run as root: a server that root starts runs it as an unprivileged user. */
import { readFile, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { StartError } from "../errors.ts";

export interface OsUser {
  uid: number;
  gid: number;
}

/**
 * @param clusterDir if it exists, its owner is the account, because PostgreSQL requires it.
 * @returns undefined when this process can run PostgreSQL itself.
 */
export async function findPostgresAccount(clusterDir: string): Promise<OsUser | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  if (process.platform !== "linux") {
    throw new StartError("PostgreSQL can't run as root: start the server as another user");
  }
  const owner = await stat(clusterDir).catch(() => undefined);
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const accounts = new Map<string, OsUser>();
  for (const line of (await readFile("/etc/passwd", "utf8")).split("\n")) {
    const [name = "", , uid, gid] = line.split(":");
    accounts.set(name, { uid: Number(uid), gid: Number(gid) });
  }
  const account = accounts.get("postgres") ?? accounts.get("nobody");
  if (!account) {
    throw new StartError(
      "PostgreSQL can't run as root, and there is no user 'postgres' or 'nobody': start the server as another user",
    );
  }
  return account;
}

/** Returns whether the account can traverse `path` and all directories above it. */
export async function canReach(path: string, account: OsUser): Promise<boolean> {
  for (let dir = path; ; dir = dirname(dir)) {
    if (!canTraverse(await stat(dir), account)) return false;
    if (dir === dirname(dir)) return true;
  }
}

function canTraverse(
  { mode, uid, gid }: { mode: number; uid: number; gid: number },
  account: OsUser,
): boolean {
  if (uid === account.uid) return (mode & 0o100) !== 0;
  if (gid === account.gid) return (mode & 0o010) !== 0;
  return (mode & 0o001) !== 0;
}
