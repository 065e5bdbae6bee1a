/** A backup of a server in use, and of a stopped one: what a server that is restored from it has. */
import type { ChildProcess } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import type { CaptureDetail } from "../../../protocol/schemas/inspector/captures.ts";
import type { Tunnel } from "../../../protocol/schemas/tunnels/tunnels.ts";
import type { Receiver } from "../../../protocol/schemas/webhooks.ts";
import {
  type CommandResult,
  readObjects,
  readRows,
  readStoredRows,
  type Rows,
  runBackup,
  runRestore,
} from "../../harness/backup/commands.ts";
import { connectDatabase } from "../../../self-host/postgres/migrate.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { createReceiver, deliver } from "../../harness/fakes/vendor.ts";
import { createCaller, PASSWORD, startApi, type TestApi } from "../../harness/server/api.ts";
import { createOldDataDir } from "../../harness/server/old-data.ts";
import { readRecord } from "../../harness/server/old-server.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";
import { startTunnelOwner, type TunnelOwner } from "../../harness/tunnel/owned-tunnel.ts";
import {
  getCapture,
  startVisitedTunnel,
  type VisitedTunnel,
  waitForCaptures,
} from "../../harness/tunnel/visited-tunnel.ts";

/** Has rows of every kind. */
const RECORD_DIR = join(import.meta.dirname, "../upgrade/71058ae");
const VISITS = 5;
const DELIVERIES = ["before-1", "before-2", "before-3"];

let directory: string;
let dataDir: string;
let stack: TunnelOwner;
let tunnel: VisitedTunnel;
let receiver: Receiver;
let captures: CaptureDetail[];
/** Requests and deliveries that were acknowledged while the backup ran. */
let acknowledged = 0;
let backup: CommandResult;
let restored: CommandResult;
/** Rows that were the same before and after the backup. */
let steadyRows: Rows;
const file = () => join(directory, "running.tar.gz");
const restoredDir = () => join(directory, "restored");

beforeAll(async () => {
  directory = await createTemporaryDir();
  ({ dataDir } = await createOldDataDir(RECORD_DIR, readRecord(RECORD_DIR), {}));
  stack = await startTunnelOwner({ dataDir });
  const { api, owner } = stack;
  tunnel = await startVisitedTunnel(stack, "backed-up");
  receiver = await createReceiver(owner);
  for (let n = 0; n < VISITS; n += 1) await tunnel.send(`GET /before/${n}`);
  for (const id of DELIVERIES) await deliver(api.server, receiver, { id });
  const listed = await waitForCaptures(owner, { tunnel_id: tunnel.id }, VISITS);
  captures = await Promise.all(listed.map(({ id }) => getCapture(owner, id)));
  await vi.waitUntil(async () => (await tunnel.getListed()).totalRequests === VISITS, WAIT_OPTIONS);

  const before = await readRows(api.sql);
  backup = await withLoad(() => runBackup(dataDir, file()));
  const after = await readRows(api.sql);
  steadyRows = new Map(
    [...before].map(([table, rows]) => {
      const remaining = new Set(after.get(table));
      return [table, rows.filter((row) => remaining.has(row))];
    }),
  );
  restored = await runRestore(file(), restoredDir());
});
afterAll(async () => {
  await stack?.stop();
  for (const dir of [dataDir, directory]) await rm(dir, { recursive: true, force: true });
});

/** Visits the tunnel, delivers webhooks and creates tunnels for as long as the work takes. */
async function withLoad<Result>(work: () => Promise<Result>): Promise<Result> {
  let isRunning = true;
  const load = (async () => {
    for (let n = 0; isRunning; n += 1) {
      await tunnel.send(`GET /during/${n}`);
      await deliver(stack.api.server, receiver, { id: `during-${n}` });
      await stack.owner.post("/tunnels", { localPort: 1, subdomain: `backed-up-${n}` });
      acknowledged += 1;
    }
  })();
  const result = await work();
  isRunning = false;
  await load;
  return result;
}

test("the backup is one file, which only its owner can read", async () => {
  expect(backup).toMatchObject({ code: 0, stderr: "" });
  expect(backup.stdout).toMatch(/^wrote .*running\.tar\.gz: /m);
  expect((await stat(file())).mode & 0o777).toBe(0o600);
  expect(acknowledged).toBeGreaterThan(0);
});

test("an interrupted backup leaves no file, and says so", async () => {
  const other = join(directory, "interrupted");
  await mkdir(other);
  await using changing = await connectExclusively(await stack.api.server.databaseUrl());
  let child: ChildProcess | undefined;
  const interrupted = runBackup(dataDir, other, { onStart: (started) => (child = started) });
  // It waits for the transaction that changes rows.
  await vi.waitUntil(async () => (await readdir(other)).length > 0, WAIT_OPTIONS);
  await vi.waitUntil(changing.isWaitedFor, WAIT_OPTIONS);
  child!.kill("SIGTERM");
  expect(await interrupted).toMatchObject({
    code: 1,
    stderr: "backup: interrupted by SIGTERM; nothing was left behind\n",
  });
  expect(await readdir(other)).toEqual([]);
});

test("an interrupted restore leaves nothing, although its PostgreSQL still writes", async () => {
  const other = join(directory, "interrupted-restore");
  let child: ChildProcess | undefined;
  const interrupted = runRestore(file(), other, { onStart: (started) => (child = started) });
  const postmaster = join(other, "restore.partial/postgres/postmaster.pid");
  await vi.waitUntil(() => existsSync(postmaster), WAIT_OPTIONS);
  child!.kill("SIGTERM");
  expect(await interrupted).toMatchObject({
    code: 1,
    stderr: "restore: interrupted by SIGTERM; nothing was left behind\n",
  });
  expect(await readdir(other)).toEqual([]);
});

/** A transaction that a backup has to wait for. */
async function connectExclusively(databaseUrl: string) {
  const client = await connectDatabase(databaseUrl);
  await client.query("begin; lock table installation in row exclusive mode");
  const waiting = "select from pg_locks where relation = 'installation'::regclass and not granted";
  return {
    isWaitedFor: async () => ((await client.query(waiting)).rowCount ?? 0) > 0,
    [Symbol.asyncDispose]: () => client.end(),
  };
}

test("a restored database has every row that the server had", async () => {
  expect(restored).toMatchObject({ code: 0, stderr: "" });
  const rows = await readStoredRows(restoredDir());
  expect([...rows.keys()]).toEqual([...steadyRows.keys()]);
  for (const [table, expected] of steadyRows) {
    const found = new Set(rows.get(table));
    expect([table, expected.filter((row) => !found.has(row))]).toEqual([table, []]);
  }
  expect(steadyRows.get("users")!.length).toBeGreaterThan(1);
});

describe("a server on the restored directory", () => {
  let api: TestApi;
  beforeAll(async () => {
    api = await startApi({ dataDir: restoredDir() });
  });
  afterAll(() => api?.stop());

  test("knows passwords, sessions and captured requests", async () => {
    const person = await api.logIn(stack.owner.email, PASSWORD);
    const { cookie } = stack.owner;
    const { status } = await createCaller(api.server, { cookie }).post("/auth/refresh");
    expect(status).toBe(200);
    for (const capture of captures) expect(await getCapture(person, capture.id)).toEqual(capture);
  });

  test("has each acknowledged delivery once, and accepts further ones", async () => {
    const person = await api.logIn(stack.owner.email, PASSWORD);
    expect((await deliver(api.server, receiver, { id: "after" })).status).toBe(200);
    // Known already: stored once.
    await deliver(api.server, receiver, { id: DELIVERIES[0]! });
    const { body } = await person.get<{ kept: number }>(`/webhook-receivers/${receiver.id}`);
    expect(body.kept).toBeGreaterThanOrEqual(DELIVERIES.length + 1);
    expect(body.kept).toBeLessThanOrEqual(DELIVERIES.length + 1 + acknowledged);
    const { body: page } = await person.get<{ events: { id: string }[] }>(
      `/webhook-receivers/${receiver.id}/events`,
    );
    const ids = page.events.map(({ id }) => id);
    expect(ids).toEqual([...new Set(ids)]);
    expect(ids).toEqual(expect.arrayContaining(DELIVERIES));
  });

  test("takes the agent's token, serves the same tunnel, and counts no request twice", async () => {
    const person = await api.logIn(stack.owner.email, PASSWORD);
    const countRequests = async () => {
      const { body } = await person.get<Tunnel[]>("/tunnels");
      return body.find(({ id }) => id === tunnel.id)!.totalRequests;
    };
    const before = await countRequests();
    expect(before).toBeGreaterThanOrEqual(VISITS);
    expect(before).toBeLessThanOrEqual(VISITS + acknowledged);
    const attempt = await api.connectAgent(stack.token, { port: 1, subdomain: "backed-up" });
    expect(attempt.code).toBeUndefined();
    attempt.socket?.close();
    expect(await countRequests()).toBeLessThanOrEqual(VISITS + acknowledged);
  });
});

describe("while the server is stopped", () => {
  let stopped: string;
  beforeAll(async () => {
    await stack.stop();
    stopped = join(directory, "stopped");
  });

  test("a backup and its restoration change no row and no object", async () => {
    const rows = await readStoredRows(dataDir);
    const objects = readObjects(dataDir);
    const made = await runBackup(dataDir, directory);
    expect(made).toMatchObject({ code: 0, stderr: "" });
    const name = (await readdir(directory)).find((one) => one.startsWith("underpass-"))!;
    expect(await runRestore(join(directory, name), stopped)).toMatchObject({ code: 0, stderr: "" });
    expect(await readStoredRows(stopped)).toEqual(rows);
    expect(readObjects(stopped)).toEqual(objects);
  });

  test("a directory with data is not restored to, and the backup is not overwritten", async () => {
    const again = await runRestore(file(), stopped);
    expect(again).toMatchObject({ code: 1, stdout: "" });
    expect(again.stderr).toMatch(/^restore: .*stopped is not empty: name a directory/);
    const overwriting = await runBackup(dataDir, file());
    expect(overwriting).toMatchObject({ code: 1, stdout: "" });
    expect(overwriting.stderr).toMatch(/^backup: .* exists: name another file/);
  });

  test("a full disk leaves nothing behind", async ({ skip }) => {
    const disk = join(directory, "disk");
    const mount = `mkdir ${disk} && mount -t tmpfs -o size=256k underpass-test ${disk} &&`;
    const list = `; code=$?; ls -A ${disk}; exit $code`;
    const prefix = ["unshare", "--mount", "sh", "-c", `${mount} "$@"${list}`, "sh"];
    const { code, stdout, stderr } = await runBackup(dataDir, join(disk, "full.tar.gz"), {
      prefix,
    });
    if (/unshare:|mount:|ENOENT/.test(stderr)) skip("only root can mount a small disk");
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^backup: .*(?:no space left|disk is full|disk I\/O error).*/i);
    // Names the disk that is full, which is not that of the objects.
    expect(stderr).toContain(disk);
  });
});
