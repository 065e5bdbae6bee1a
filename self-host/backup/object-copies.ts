/**
 * Consistent copies of the files in which workerd stores objects, even while it writes to them: SQLite's own backup reads
 * each file, with its write-ahead log, as it was at one moment.
 */
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { backup, DatabaseSync } from "node:sqlite";
import { StartError } from "../errors.ts";
import { getErrorMessage } from "../../shared/error-message.ts";

const STORED_FILE = /^underpass-[A-Za-z]+\/(?:[0-9a-f]{64}|metadata)\.sqlite$/;
const ALARMS_FILE = "metadata.sqlite";

/** How long a copy waits while workerd moves the write-ahead log into the file. */
const BUSY_MAX_MS = 10_000;
/** All pages in one step, so that a change of the file does not start the copy again. */
const ALL_PAGES = 2 ** 31 - 1;
/** A file that changed this recently may change again without another timestamp. */
const TIMESTAMP_TOLERANCE_MS = 2_000;

export class ObjectCopies {
  readonly #objectsDir: string;
  readonly #copiesDir: string;
  /** The state of each file before its last copy, by path; undefined when that may not show a later change. */
  readonly #copied = new Map<string, string | undefined>();

  /** @param copiesDir a directory that this creates. */
  constructor(objectsDir: string, copiesDir: string) {
    this.#objectsDir = objectsDir;
    this.#copiesDir = copiesDir;
  }

  /**
   * Copies the files that are new or have changed since their last copy.
   *
   * @param signal stops between two files.
   * @returns how many, and their bytes.
   */
  async update(signal?: AbortSignal): Promise<{ files: number; bytes: number }> {
    let [files, bytes] = [0, 0];
    for (const path of await listStoredFiles(this.#objectsDir)) {
      signal?.throwIfAborted();
      const state = await readState(join(this.#objectsDir, path));
      const known = this.#copied.get(path);
      if (known !== undefined && known === state.text) continue;
      await copyDatabase(join(this.#objectsDir, path), this.locate(path));
      this.#copied.set(path, state.isSettled ? state.text : undefined);
      files += 1;
      bytes += (await stat(this.locate(path))).size;
    }
    return { files, bytes };
  }

  /** @returns the paths of the copies, with the directory of their class, such as `underpass-Tunnel/ID.sqlite`. */
  list(): string[] {
    return [...this.#copied.keys()].sort();
  }

  /** @returns the path of a copy in the file system. */
  locate(path: string): string {
    return join(this.#copiesDir, path);
  }
}

async function listStoredFiles(objectsDir: string): Promise<string[]> {
  const found: string[] = [];
  for (const directory of await readdir(objectsDir)) {
    const names = await readdir(join(objectsDir, directory)).catch(() => []);
    found.push(
      ...names.map((name) => `${directory}/${name}`).filter((path) => STORED_FILE.test(path)),
    );
  }
  return found;
}

async function readState(path: string): Promise<{ text: string; isSettled: boolean }> {
  const parts: string[] = [];
  let newestMs = 0;
  for (const file of [path, `${path}-wal`]) {
    const found = await stat(file, { bigint: true }).catch(() => undefined);
    parts.push(found ? `${found.size} ${found.mtimeNs} ${found.ino}` : "none");
    newestMs = Math.max(newestMs, Number(found?.mtimeMs ?? 0));
  }
  return { text: parts.join(), isSettled: Date.now() - newestMs > TIMESTAMP_TOLERANCE_MS };
}

async function copyDatabase(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 });
  await rm(to, { force: true });
  try {
    using source = new DatabaseSync(from, { readOnly: true, timeout: BUSY_MAX_MS });
    await backup(source, to, { rate: ALL_PAGES });
  } catch (error) {
    throw new StartError(`${from} can't be copied to ${dirname(to)}: ${getErrorMessage(error)}`);
  }
}

/**
 * workerd stores the time of an object's alarm in two files: in the object's own, and in one that lists the alarms of all
 * objects of a class, which was copied at another moment. An alarm that is missing there would never run; one that is
 * obsolete has no effect. So the list gets every alarm of the objects.
 *
 * @returns how many alarms were added or changed.
 */
export async function restoreAlarms(objectsDir: string): Promise<number> {
  let changed = 0;
  const paths = await listStoredFiles(objectsDir);
  for (const [directory, files] of Map.groupBy(paths, (path) => dirname(path))) {
    using alarms = new DatabaseSync(join(objectsDir, directory, ALARMS_FILE));
    alarms.exec(
      "create table if not exists _cf_ALARM (actor_id text primary key, scheduled_time integer, actor_name text) without rowid",
    );
    const upsert = alarms.prepare(
      `insert into _cf_ALARM (actor_id, scheduled_time) values (?, ?) on conflict do update
       set scheduled_time = excluded.scheduled_time where scheduled_time is not excluded.scheduled_time`,
    );
    upsert.setReadBigInts(true);
    for (const path of files) {
      const [, id] = /([0-9a-f]{64})\.sqlite$/.exec(path) ?? [];
      const time = id === undefined ? undefined : readAlarm(join(objectsDir, path));
      if (id !== undefined && time !== undefined) changed += Number(upsert.run(id, time).changes);
    }
  }
  return changed;
}

/** The row of `_cf_METADATA` that has the time of the alarm. */
const ALARM_KEY = 1;

/** @returns the time of an object's alarm in nanoseconds since the epoch. */
function readAlarm(path: string): bigint | undefined {
  using object = new DatabaseSync(path, { readOnly: true });
  const hasTable = object.prepare("select 1 from sqlite_master where name = '_cf_METADATA'").get();
  if (!hasTable) return undefined;
  const select = object.prepare("select value from _cf_METADATA where key = ?");
  select.setReadBigInts(true);
  const value = select.get(ALARM_KEY)?.value;
  return typeof value === "bigint" ? value : undefined;
}
