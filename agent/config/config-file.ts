/** Where underpass.yml is, and its text. */
import { readFile, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { explainError } from "../error-message.ts";
import { fileExists } from "../disk/file-exists.ts";
import { findHomeDirectory } from "../disk/home-directory.ts";
import { UsageError } from "../options.ts";
import { getErrorCode } from "../../shared/error-message.ts";

const FILE_NAMES = ["underpass.yml", "underpass.yaml"] as const;
const FILE_MAX_BYTES = 1024 * 1024;

/**
 * The path of the configuration: `given`, or the file in the current directory or the nearest parent. The search ends at the root of
 * a repository and at the home directory.
 * @throws UsageError when there is none, or when the one in a parent directory belongs to another user: any user can put a file
 * into /tmp, and it could open this user's local ports to everyone.
 */
export async function findConfigFile(given: string | undefined): Promise<string> {
  if (given !== undefined) return resolve(given);
  const home = findHomeDirectory();
  for (let directory = process.cwd(); ; directory = dirname(directory)) {
    for (const name of FILE_NAMES) {
      const path = join(directory, name);
      if (!(await fileExists(path))) continue;
      if (directory !== process.cwd()) await requireOwnFile(path);
      return path;
    }
    const isLast = directory === home || directory === dirname(directory);
    if (isLast || (await fileExists(join(directory, ".git")))) break;
  }
  throw new UsageError(
    `there is no ${FILE_NAMES[0]} in ${process.cwd()} or above it; create one, or name it with --config`,
  );
}

/** A file of root is trusted, as root can change any file. @throws UsageError */
async function requireOwnFile(path: string): Promise<void> {
  const user = process.getuid?.();
  const { uid } = await stat(path);
  if (user !== undefined && uid !== user && uid !== 0)
    throw new UsageError(
      `${path} belongs to another user; to use it nevertheless, pass --config ${path}`,
    );
}

/** @throws UsageError when it can't be read or is too large. */
export async function readConfigFile(path: string): Promise<string> {
  try {
    const { size } = await stat(path);
    if (size > FILE_MAX_BYTES)
      throw new UsageError(`${path} is larger than 1 MiB; name another file with --config`);
    return await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`can't read ${path}: ${describeReadError(error)}`);
  }
}

/** Why a file could not be read, as the end of a sentence. */
export function describeReadError(error: unknown): string {
  switch (getErrorCode(error)) {
    case "ENOENT":
      return "it does not exist; check the path";
    case "EACCES":
    case "EPERM":
      return "this user may not read it; change its permissions";
    case "EISDIR":
      return "it is a directory; name a file";
    default:
      return explainError(error);
  }
}
