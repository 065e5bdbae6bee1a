/** What keeps rows and objects of a backup as of the same moment. */
import { mkdir, rm, stat, utimes } from "node:fs/promises";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { ObjectCopies, restoreAlarms } from "../../../self-host/backup/object-copies.ts";
import { withWritePause } from "../../../self-host/backup/write-pause.ts";
import { connectDatabase } from "../../../self-host/postgres/migrate.ts";
import { type EmbeddedPostgres, startPostgres } from "../../../self-host/postgres/postgres.ts";
import { createPreparedDir, createTemporaryDir, silentLog } from "../../harness/directories.ts";
import { readStoredSecrets } from "../../../self-host/secrets.ts";

describe("while writes are held back", () => {
  let dataDir: string;
  let postgres: EmbeddedPostgres;
  let [pausing, writing]: pg.Client[] = [];
  const insert = (key: string) =>
    writing!.query("insert into installation (key, value) values ($1, 'x')", [key]);
  const countRows = async () =>
    (await pausing!.query<{ n: number }>("select count(*)::int as n from installation")).rows[0]!.n;
  beforeAll(async () => {
    dataDir = await createPreparedDir();
    const secrets = await readStoredSecrets(dataDir);
    postgres = await startPostgres(dataDir, secrets!.postgres, silentLog);
    pausing = await connectDatabase(postgres.url);
    writing = await connectDatabase(postgres.url);
  });
  afterAll(async () => {
    await pausing?.end();
    await writing?.end();
    await postgres?.stop();
    await rm(dataDir, { recursive: true, force: true });
  });

  test("a write waits for the end of the pause, and a read does not", async () => {
    const before = await countRows();
    let written: Promise<unknown> | undefined;
    await withWritePause(pausing!, async () => {
      await writing!.query("select from installation");
      written = insert("waits");
      expect(await countRows()).toBe(before);
    });
    await written;
    expect(await countRows()).toBe(before + 1);
  });

  test("the pause begins after transactions in progress, and gives up on an endless one", async () => {
    await writing!.query("begin");
    await insert("endless");
    const paused = withWritePause(pausing!, () => Promise.resolve("begun"));
    await expect(paused).rejects.toThrow(/the database is too busy for a backup .*: run it when/);
    await writing!.query("commit");
    expect(await withWritePause(pausing!, () => Promise.resolve("begun"))).toBe("begun");
  });

  test("writes wait no longer than the limit: the backup fails instead", async () => {
    const endless = () => new Promise<never>(() => {});
    await expect(withWritePause(pausing!, endless, 50)).rejects.toThrow(
      /the objects change faster than they can be copied in 50 ms: run the backup/,
    );
    await insert("after the limit");
  });
});

describe("objects", () => {
  let directory: string;
  beforeEach(async () => {
    directory = await createTemporaryDir();
  });
  afterEach(() => rm(directory, { recursive: true, force: true }));
  const toPath = (name: string) => `underpass-Tunnel/${name}.sqlite`;
  const id = (digit: string) => digit.repeat(64);
  const locate = (path: string) => join(directory, "objects", path);

  async function openObject(path: string, sql: string): Promise<DatabaseSync> {
    await mkdir(dirname(locate(path)), { recursive: true });
    const database = new DatabaseSync(locate(path));
    database.exec(`pragma journal_mode = wal; pragma wal_autocheckpoint = 0; ${sql}`);
    return database;
  }
  const readAll = (path: string, sql: string) => {
    using database = new DatabaseSync(path, { readOnly: true });
    return database
      .prepare(sql)
      .all()
      .map((row) => ({ ...row }));
  };

  test("are copied with their write-ahead log, and again only after a change", async () => {
    using first = await openObject(toPath(id("a")), "create table t (n); insert into t values (1)");
    using second = await openObject(toPath(id("b")), "create table t (n)");
    second.exec("insert into t values (5)");
    const copies = new ObjectCopies(join(directory, "objects"), join(directory, "copies"));
    const settle = async () => {
      const past = new Date(Date.now() - 60_000);
      for (const name of [id("a"), id("b")]) {
        for (const path of [locate(toPath(name)), `${locate(toPath(name))}-wal`])
          await utimes(path, past, past);
      }
    };
    await settle();
    expect(await copies.update()).toMatchObject({ files: 2 });
    expect(await copies.update()).toEqual({ files: 0, bytes: 0 });
    first.exec("insert into t values (2)");
    expect((await stat(`${locate(toPath(id("a")))}-wal`)).size).toBeGreaterThan(0);
    expect(await copies.update()).toMatchObject({ files: 1 });
    expect(readAll(copies.locate(toPath(id("a"))), "select n from t")).toEqual([
      { n: 1 },
      { n: 2 },
    ]);
    expect(readAll(copies.locate(toPath(id("b"))), "select n from t")).toEqual([{ n: 5 }]);
  });

  test("that have just changed are copied again, because their timestamps may not show the next change", async () => {
    using _object = await openObject(toPath(id("a")), "create table t (n)");
    const copies = new ObjectCopies(join(directory, "objects"), join(directory, "copies"));
    for (const _ of [1, 2]) expect(await copies.update()).toMatchObject({ files: 1 });
  });

  test("keep their alarms, also those that the list of the class does not have", async () => {
    const metadata = (value: string) =>
      `create table _cf_METADATA (key integer primary key, value blob); insert into _cf_METADATA values (1, ${value})`;
    (await openObject(toPath(id("a")), metadata("4948953579724000000"))).close();
    (await openObject(toPath(id("b")), metadata("4948953579724000001"))).close();
    (await openObject(toPath(id("c")), "create table t (n)")).close();
    const list = `create table _cf_ALARM (actor_id text primary key, scheduled_time integer, actor_name text) without rowid;
      insert into _cf_ALARM values ('${id("a")}', 7, 'named'), ('${id("b")}', 4948953579724000001, null)`;
    (await openObject(toPath("metadata"), list)).close();
    expect(await restoreAlarms(join(directory, "objects"))).toBe(1);
    const alarms = "select actor_name as name, cast(scheduled_time as text) as time from _cf_ALARM";
    expect(readAll(locate(toPath("metadata")), alarms)).toEqual([
      { name: "named", time: "4948953579724000000" },
      { name: null, time: "4948953579724000001" },
    ]);
  });
});
