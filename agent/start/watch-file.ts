/** Reports that a file may have changed. */
import { readlinkSync, realpathSync, unwatchFile, watch, watchFile } from "node:fs";
import { basename, dirname, resolve } from "node:path";

/** Editors write a file in several steps; the steps of one save are one change. */
const CHANGE_DELAY_MS = 200;
/** How often the file is checked where the system can't watch its directory. */
const POLL_INTERVAL_MS = 2_000;
/** Linux follows as many links from one to the next. */
const LINKS_MAX = 40;

/**
 * Calls `onChange` after the file was written, replaced by a rename, or created again. If it is a link, that also holds for the
 * file that it leads to. Directories are watched, because a watch on the file itself follows the old file after a rename.
 * @returns a function that ends the watch.
 */
export function watchForChanges(path: string, onChange: () => void): () => void {
  let pending: NodeJS.Timeout | undefined;
  /** The functions that end the watches, by the watched paths. */
  const watches = new Map<string, () => void>();
  const report = (): void => {
    pending ??= setTimeout(() => {
      pending = undefined;
      follow();
      onChange();
    }, CHANGE_DELAY_MS);
  };
  const poll = (): void => void watchFile(path, { interval: POLL_INTERVAL_MS }, report);
  /** Links may lead to other files after a change. */
  function follow(): void {
    const paths = new Set(listPaths(path));
    for (const [watched, end] of watches) {
      if (paths.has(watched)) continue;
      end();
      watches.delete(watched);
    }
    for (const found of paths)
      if (!watches.has(found)) watches.set(found, watchDirectory(found, report, poll));
  }
  follow();
  return () => {
    clearTimeout(pending);
    for (const end of watches.values()) end();
    unwatchFile(path, report);
  };
}

/** @returns the path, those of the links on the way to its file, and the file's own, as far as they exist. */
function listPaths(path: string): string[] {
  const paths = [path];
  try {
    while (paths.length < LINKS_MAX) {
      const link = paths.at(-1)!;
      paths.push(resolve(dirname(link), readlinkSync(link)));
    }
  } catch {
    // The last one is not a link, or does not exist.
  }
  try {
    paths.push(realpathSync(path));
  } catch {
    // It does not exist now.
  }
  return paths;
}

/** @param onFailure called once when the directory can't be watched, or no longer. */
function watchDirectory(path: string, report: () => void, onFailure: () => void): () => void {
  try {
    const watcher = watch(dirname(path), (_, name) => {
      // A mounted configuration is often a link to a link, whose own directory entry never changes.
      if (name === null || name === basename(path) || name.startsWith("..")) report();
    });
    watcher.on("error", () => {
      watcher.close();
      onFailure();
    });
    return () => watcher.close();
  } catch {
    onFailure();
    return () => undefined;
  }
}
