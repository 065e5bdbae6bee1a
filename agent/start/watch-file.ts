/** Reports that a file may have changed. */
import { unwatchFile, watch, watchFile } from "node:fs";
import { basename, dirname } from "node:path";

/** Editors write a file in several steps; the steps of one save are one change. */
const CHANGE_DELAY_MS = 200;
/** How often the file is checked where the system can't watch its directory. */
const POLL_INTERVAL_MS = 2_000;

/**
 * Calls `onChange` after the file was written, replaced by a rename, or created again. The directory is watched, because a
 * watch on the file itself follows the old file after a rename.
 * @returns a function that ends the watch.
 */
export function watchForChanges(path: string, onChange: () => void): () => void {
  let pending: NodeJS.Timeout | undefined;
  const report = (): void => {
    pending ??= setTimeout(() => {
      pending = undefined;
      onChange();
    }, CHANGE_DELAY_MS);
  };
  const poll = (): void => void watchFile(path, { interval: POLL_INTERVAL_MS }, report);
  const stopWatching = watchDirectory(path, report, poll);
  return () => {
    clearTimeout(pending);
    stopWatching();
    unwatchFile(path, report);
  };
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
