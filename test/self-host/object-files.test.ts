import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, test } from "vitest";
import { removeUnusedObjects } from "../../self-host/object-files.ts";
import { createTemporaryDir } from "../harness/directories.ts";

let dir: string;
beforeEach(async () => {
  dir = await createTemporaryDir();
});
afterEach(() => rm(dir, { recursive: true }));

const newId = () => Buffer.from(crypto.getRandomValues(new Uint8Array(32))).toString("hex");

/** Creates an object's file as workerd does: a database in WAL mode that was closed. */
async function createObject(className: string, sql: string, id = newId()): Promise<string> {
  const path = join(`underpass-${className}`, `${id}.sqlite`);
  await mkdir(dirname(join(dir, path)), { recursive: true });
  const database = new DatabaseSync(join(dir, path));
  database.exec(`pragma journal_mode = wal; ${sql}`);
  database.close();
  return path;
}

const listFiles = async () =>
  (await readdir(dir, { recursive: true })).filter((path) => path.includes(".sqlite")).sort();

test("objects that store nothing are removed, all others and their alarms remain", async () => {
  await createObject("Receiver", "");
  await createObject("Receiver", "create table t (a); drop table t; vacuum");
  await writeFile(join(dir, "underpass-Receiver", `${newId()}.sqlite`), "");
  const kept = [
    await createObject("Receiver", "create table t (a); insert into t values (1)"),
    // Its tables are empty, but their schema is stored.
    await createObject("Receiver", "create table t (a)"),
    await createObject("Tunnel", "create view v as select 1"),
    await createObject("Receiver", "", "metadata"),
  ];
  expect(await removeUnusedObjects(dir)).toBe(3);
  expect(await listFiles()).toEqual(kept.sort());
  expect(await removeUnusedObjects(dir)).toBe(0);
});

test("an object whose last changes are only in the log of a killed server remains", async () => {
  const path = await createObject("Receiver", "");
  await writeFile(join(dir, `${path}-wal`), "changes");
  expect(await removeUnusedObjects(dir)).toBe(0);
  expect(await listFiles()).toEqual([path, `${path}-wal`]);
});

test("other files are not touched, whatever they contain", async () => {
  await mkdir(join(dir, "underpass-Receiver"));
  const others = ["notes.sqlite", `${newId()}.sqlite.bak`, `${newId().slice(1)}.sqlite`];
  for (const name of others) await writeFile(join(dir, "underpass-Receiver", name), "");
  await writeFile(join(dir, "underpass-Receiver", `${newId()}.sqlite`), "x".repeat(4096));
  expect(await removeUnusedObjects(dir)).toBe(0);
  expect(await listFiles()).toHaveLength(4);
});

test("the objects of a class that no longer exists are removed", async () => {
  await createObject("Hostname", "create table t (a); insert into t values (1)");
  await createObject("Hostname", "", "metadata");
  expect(await removeUnusedObjects(dir)).toBe(1);
  expect(await readdir(dir)).toEqual([]);
});
