/** A file for a secret, which a command creates. */
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
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

/** Only this user can read it. */
export async function writeNewFile(path: string, content: string | Uint8Array): Promise<void> {
  await writeFile(path, content, { mode: 0o600, flag: "wx" });
}
