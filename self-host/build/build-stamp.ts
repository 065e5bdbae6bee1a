/**
 * Detects whether a bundle is up to date. A stamp beside the bundle lists its source files with their modification
 * times and sizes. When none of them has changed, a start does not build again.
 */
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

const Stamp = z.object({
  /** By path: modification time in milliseconds since the epoch, and size in bytes. */
  inputs: z.record(z.string(), z.tuple([z.number(), z.number()])),
});

/** @param paths all source files of the bundle. @param startedAtMs when its build began. */
export async function writeStamp(
  stampPath: string,
  paths: string[],
  startedAtMs: number,
): Promise<void> {
  const inputs: z.infer<typeof Stamp>["inputs"] = {};
  for (const path of paths) {
    const stamp = await readFileStamp(path);
    // The file changed during the build: the bundle may have been made from either version.
    if (!stamp || stamp[0] >= startedAtMs) return void (await rm(stampPath, { force: true }));
    inputs[path] = stamp;
  }
  await writeFile(stampPath, JSON.stringify({ inputs } satisfies z.infer<typeof Stamp>));
}

/** Returns whether no source file of the bundle has changed since it was built. */
export async function isUpToDate(stampPath: string): Promise<boolean> {
  let stamp: z.infer<typeof Stamp>;
  try {
    stamp = Stamp.parse(JSON.parse(await readFile(stampPath, "utf8")));
  } catch {
    return false;
  }
  const checks = Object.entries(stamp.inputs).map(async ([path, [changedAtMs, bytes]]) => {
    const current = await readFileStamp(path);
    return current !== null && current[0] === changedAtMs && current[1] === bytes;
  });
  return (await Promise.all(checks)).every(Boolean);
}

/** All files below a directory. */
export async function listFiles(directory: string): Promise<string[]> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
}

async function readFileStamp(path: string): Promise<[number, number] | null> {
  try {
    const { mtimeMs, size } = await stat(path);
    return [mtimeMs, size];
  } catch {
    return null;
  }
}
