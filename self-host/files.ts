/** Files and directories with secrets: readable by their owner only, and replaced atomically. */
import { chmod, mkdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";

/** The kernel's limit for the path of a socket is 104 bytes on macOS and 108 on Linux, including the final zero. */
export const SOCKET_PATH_MAX_BYTES = 103;

/** Also those above it that are missing. */
export async function createPrivateDirectory(path: string): Promise<void> {
  await createDirectory(path);
  await chmod(path, 0o700);
}

/** Where the kernel creates no directories, as in /proc, `mkdir` with `recursive` of Node.js never ends. */
async function createDirectory(path: string): Promise<void> {
  if (await isDirectory(path)) return;
  if (dirname(path) !== path) await createDirectory(dirname(path));
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    // Another call, or another process, may have created it in the meantime.
    if (!(await isDirectory(path))) throw error;
  }
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

/** A reader gets the old content or the new, even after a crash. Other users can read neither. */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const fresh = `${path}.${process.pid}.new`;
  try {
    await writeFile(fresh, content, { mode: 0o600, flush: true });
    await rename(fresh, path);
  } catch (error) {
    // On a full disk, a part of it was written.
    await rm(fresh, { force: true });
    throw error;
  }
}
