/** A file system of a few hundred megabytes in memory, which can be filled. Needs Linux and root. */
import { execFileSync } from "node:child_process";
import { closeSync, openSync, writeSync } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";

const FILLER = "filler";
const CHUNK = Buffer.alloc(1024 * 1024, "f");

export interface SmallDisk {
  path: string;
  /** Leaves no byte free. */
  fill(): void;
  free(): Promise<void>;
  unmount(): Promise<void>;
}

/** @returns undefined where this user can't mount one. */
export async function mountSmallDisk(path: string, mib: number): Promise<SmallDisk | undefined> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
  await mkdir(path, { recursive: true, mode: 0o700 });
  try {
    const options = ["-t", "tmpfs", "-o", `size=${mib}m,mode=0700`];
    execFileSync("mount", [...options, "tmpfs", path], { stdio: "ignore" });
  } catch {
    return undefined;
  }
  const filler = join(path, FILLER);
  return {
    path,
    fill() {
      const file = openSync(filler, "a");
      try {
        while (writeSync(file, CHUNK) > 0);
      } catch {
        // No byte is left.
      } finally {
        closeSync(file);
      }
    },
    free: () => rm(filler, { force: true }),
    // Lazily, because a process that is just ending may still have a file open.
    unmount() {
      execFileSync("umount", ["--lazy", path], { stdio: "ignore" });
      return rm(path, { recursive: true, force: true });
    },
  };
}
