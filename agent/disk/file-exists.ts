import { access } from "node:fs/promises";

/** Whether there is a file or a directory that this user can reach. */
export async function fileExists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
