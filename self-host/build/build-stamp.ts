/**
 * Whether a bundle is of today's sources: beside it is a list of the files that it was made from, with their
 * times of change and sizes. A start that finds nothing changed need not build again.
 */
import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

const Stamp = z.object({
  /** By path: time of change in milliseconds since the epoch, and size in bytes. */
  inputs: z.record(z.string(), z.tuple([z.number(), z.number()])),
});

/** @param paths of all files that the bundle was made from. @param startedAtMs when its build began. */
export async function writeStamp(
  stampPath: string,
  paths: string[],
  startedAtMs: number,
): Promise<void> {
  const inputs: z.infer<typeof Stamp>["inputs"] = {};
  for (const path of paths) {
    const facts = await readFileStamp(path);
    // Changed while it was read: nobody knows which state the bundle has.
    if (!facts || facts[0] >= startedAtMs) return void (await rm(stampPath, { force: true }));
    inputs[path] = facts;
  }
  await writeFile(stampPath, JSON.stringify({ inputs } satisfies z.infer<typeof Stamp>));
}

/** Whether nothing that the bundle was made from has changed since. */
export async function isUpToDate(stampPath: string): Promise<boolean> {
  let stamp: z.infer<typeof Stamp>;
  try {
    stamp = Stamp.parse(JSON.parse(await readFile(stampPath, "utf8")));
  } catch {
    return false;
  }
  const checks = Object.entries(stamp.inputs).map(async ([path, [changedAtMs, bytes]]) => {
    const facts = await readFileStamp(path);
    return facts !== null && facts[0] === changedAtMs && facts[1] === bytes;
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
