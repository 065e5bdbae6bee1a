/**
 * The files in which workerd stores Durable Objects: `objects/<class>/<id>.sqlite`. workerd creates one when an object is
 * called and never removes it, even if it stays empty. They are removed before workerd starts, while none is open.
 */
import { open, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { getErrorCode } from "../shared/error-message.ts";

/** Classes that no longer exist, whose objects had only copies of rows. */
const OBSOLETE_CLASS_DIRECTORIES = ["underpass-Hostname"];
/** Not `metadata.sqlite`, in which workerd stores alarms. */
const OBJECT_FILE = /^[0-9a-f]{64}\.sqlite$/;

/** @returns how many files of objects were removed. */
export async function removeUnusedObjects(objectsDir: string): Promise<number> {
  let removed = 0;
  for (const name of OBSOLETE_CLASS_DIRECTORIES) {
    const directory = join(objectsDir, name);
    removed += (await listObjectFiles(directory)).length;
    await rm(directory, { recursive: true, force: true });
  }
  for (const entry of await readdir(objectsDir, { withFileTypes: true })) {
    if (!entry.isDirectory()) continue;
    for (const path of await listObjectFiles(join(objectsDir, entry.name))) {
      if (!(await isEmptyObject(path))) continue;
      await rm(path, { force: true });
      for (const suffix of ["-wal", "-shm"]) await rm(path + suffix, { force: true });
      removed += 1;
    }
  }
  return removed;
}

/** Whether a server has stored live state. */
export async function hasObjects(objectsDir: string): Promise<boolean> {
  for (const name of await readdir(objectsDir)) {
    if ((await listObjectFiles(join(objectsDir, name))).length > 0) return true;
  }
  return false;
}

async function listObjectFiles(directory: string): Promise<string[]> {
  const names = await readdir(directory).catch(() => []);
  return names.filter((name) => OBJECT_FILE.test(name)).map((name) => join(directory, name));
}

const PAGE_BYTES = 4_096;
/** The fields of the file format that tell whether a database has tables (https://www.sqlite.org/fileformat.html). */
const HEADER_BYTES = 108;
const MAGIC = "SQLite format 3\0";
const PAGE_COUNT_AT = 28;
const SCHEMA_PAGE_TYPE_AT = 100;
const SCHEMA_CELL_COUNT_AT = 103;
const LEAF_TABLE_PAGE = 0x0d;

/** Whether the database has no table, so that an object without a file equals it. */
async function isEmptyObject(path: string): Promise<boolean> {
  // The write-ahead log of a server that was killed can contain more than the file.
  if ((await getSize(`${path}-wal`)) > 0) return false;
  const bytes = await getSize(path);
  if (bytes === 0) return true;
  if (bytes !== PAGE_BYTES) return false;
  const file = await open(path, "r");
  try {
    const { buffer: header, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), {
      position: 0,
    });
    return (
      bytesRead === HEADER_BYTES &&
      header.toString("latin1", 0, MAGIC.length) === MAGIC &&
      header.readUInt32BE(PAGE_COUNT_AT) === 1 &&
      header.readUInt8(SCHEMA_PAGE_TYPE_AT) === LEAF_TABLE_PAGE &&
      header.readUInt16BE(SCHEMA_CELL_COUNT_AT) === 0
    );
  } finally {
    await file.close();
  }
}

/** @returns 0 for a file that does not exist. */
async function getSize(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (getErrorCode(error) === "ENOENT") return 0;
    throw error;
  }
}
