/** Files and directories that hold secrets: made for their owner alone, and replaced whole. */
import { chmod, mkdir, rename, writeFile } from "node:fs/promises";

export async function createPrivateDirectory(path: string): Promise<void> {
  await mkdir(path, { recursive: true, mode: 0o700 });
  await chmod(path, 0o700);
}

/** A reader sees the old content or the new, after a crash too, and nobody else sees either. */
export async function writePrivateFile(path: string, content: string): Promise<void> {
  const fresh = `${path}.${process.pid}.new`;
  await writeFile(fresh, content, { mode: 0o600, flush: true });
  await rename(fresh, path);
}
