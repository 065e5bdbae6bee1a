/** Files with secrets: only their owner can read them. */
import { chmod, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { getErrorCode } from "../../shared/error-message.ts";
import { SettingsError } from "../settings-error.ts";

/** Writes or replaces the file atomically. After an error no part of the new text stays on the disk. */
export async function writePrivateFile(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}`;
  try {
    await writeFile(temporary, text, { mode: 0o600 });
    await chmod(temporary, 0o600);
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
}

/** @returns null when the file is missing. @throws SettingsError when other users can read it. */
export async function readPrivateFile(path: string): Promise<string | null> {
  try {
    const { mode } = await stat(path);
    if (process.platform !== "win32" && (mode & 0o077) !== 0) {
      throw new SettingsError(`${path} can be read by other users; run: chmod 600 ${path}`);
    }
    return await readFile(path, "utf8");
  } catch (error) {
    if (getErrorCode(error) === "ENOENT") return null;
    throw error;
  }
}
