/** A file for a secret, which a command creates. */
import { existsSync } from "node:fs";
import { open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { InputError } from "../settings-error.ts";

/**
 * Called before there is a secret that could then not be written.
 * @param option that names the file, for the message. @throws InputError
 */
export function requireNewFile(path: string | undefined, option: string): void {
  if (path === undefined) return;
  if (existsSync(path))
    throw new InputError(`${path} already exists; choose another file with ${option}`);
  const directory = dirname(path);
  if (!existsSync(directory))
    throw new InputError(
      `there is no directory ${directory}; create it, or choose another file with ${option}`,
    );
}

/** Only this user can read it. After an error, such as a full disk, the file does not exist, so that it can be tried again. */
export async function writeNewFile(path: string, content: string | Uint8Array): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(content);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}
