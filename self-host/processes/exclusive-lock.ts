/** Locks that the system releases when their process ends, however it ends: those of SQLite on the file of a database. */

/** SQLite's result code for a lock that another process holds. */
const SQLITE_BUSY = 5;

/** Referenced, so that none is closed as garbage while its process needs it. */
const held = new Set<Disposable>();

/**
 * @param path of a file that is only for this lock. It is created, stays empty, and need not be removed.
 * @returns a function that releases the lock; null when another process holds it.
 * @throws Error when the file can't be used.
 */
export function acquireExclusiveLock(path: string): (() => void) | null {
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  // In its defensive mode, SQLite keeps the journal.
  const database = new DatabaseSync(path, { defensive: false });
  try {
    // Without a journal, nothing is written, so that a full disk does not matter.
    database.exec("PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if ((error as { errcode?: unknown }).errcode === SQLITE_BUSY) return null;
    throw error;
  }
  held.add(database);
  return () => {
    if (held.delete(database)) database.close();
  };
}
