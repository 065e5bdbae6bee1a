/** Files and directories with secrets: readable by their owner only, and replaced atomically. */
import { chmod, mkdir, rename, writeFile } from "node:fs/promises";

/** The kernel's limit for the path of a socket is 104 bytes on macOS and 108 on Linux, including the final zero. */
export const SOCKET_PATH_MAX_BYTES = 103;

export async function createPrivateDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(path, 0o700);
}

/** A reader gets the old content or the new, even after a crash. Other users can read neither. */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const fresh = `${path}.${process.pid}.new`;
  await writeFile(fresh, content, { mode: 0o600, flush: true });
  await rename(fresh, path);
}
