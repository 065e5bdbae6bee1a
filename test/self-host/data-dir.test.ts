/** Servers that start with the same data directory at the same time, after one that was killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { on, once } from "node:events";
import { chown, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { mountSmallDisk } from "../../chaos/faults/small-disk.ts";
import { openDataDir } from "../../self-host/data-dir.ts";
import { createLog } from "../../self-host/log.ts";
import { findPostgresAccount } from "../../self-host/postgres/os-user.ts";
import { startPostgres } from "../../self-host/postgres/postgres.ts";
import { getCommandLine } from "../../self-host/processes/processes.ts";
import { readStoredSecrets } from "../../self-host/secrets.ts";
import { createPreparedDir, createTemporaryDir } from "../harness/directories.ts";
import { startExpectingFailure } from "../harness/server/server.ts";

const STARTS = 6;
const ROUNDS = 3;
/** No process has this id. */
const ENDED_PID = 2 ** 30;

/** Opens the directory when it gets a line, and keeps it open until its input ends. */
const PROGRAM = `
  import { openDataDir } from "${join(import.meta.dirname, "../../self-host/data-dir.ts")}";
  console.log("loaded");
  process.stdin.once("data", async () => {
    const open = openDataDir(process.argv[1]);
    console.log(await open.then(() => "opened", ({ message }) => message));
  });
`;

let dir: string;
beforeEach(async () => {
  dir = await createTemporaryDir();
  await mkdir(join(dir, "run"));
});
afterEach(() => rm(dir, { recursive: true }));

function startProgram() {
  const child: ChildProcess = spawn(process.execPath, ["--input-type=module", "-e", PROGRAM, dir], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = on(createInterface({ input: child.stdout! }), "line");
  const readLine = async () => ((await lines.next()).value as [string])[0];
  return { child, readLine };
}

/** Runs until it is killed, with these arguments. */
async function startIdleProcess(...args: string[]): Promise<ChildProcess> {
  const child = spawn(process.execPath, [
    "-e",
    "console.log(); setInterval(() => {}, 1e6)",
    ...args,
  ]);
  await once(child.stdout, "data");
  return child;
}

test("live state without its database prevents a start, which would create an empty one", async () => {
  const tunnels = join(dir, "objects/underpass-Tunnel");
  await mkdir(tunnels, { recursive: true });
  await writeFile(join(tunnels, `${"0f".repeat(32)}.sqlite`), "");
  const { code, stderr } = await startExpectingFailure({ DATA_DIR: dir });
  expect(code).toBe(1);
  expect(stderr).toBe(
    `underpass: DATA_DIR: ${dir} has the live state of a server, but no database: set DATABASE_URL if that server did, or restore a backup into an empty directory\n`,
  );
  expect((await readdir(dir)).sort()).toEqual(["objects", "run"]);
});

/** Process ids are given out again, soon in a container, and to another server with the same command line. */
test("the record of a server that was killed does not stand for another process with its id", async () => {
  const program = await startIdleProcess();
  const commandLine = getCommandLine(program.pid!);
  const record = { pid: program.pid, commandLine, hasLock: true };
  await writeFile(join(dir, "run/server.json"), JSON.stringify(record));
  const opened = await openDataDir(dir);
  program.kill();
  // Nothing is written for the lock, which the disk could have no space for.
  expect((await readdir(join(dir, "run"))).sort()).toEqual(["server.json", "server.lock"]);
  await opened.release();
});

test("after a server that was killed, its workerd is ended, and no workerd of another server", async () => {
  const [own, other] = await Promise.all(
    [dir, "/other"].map((path) =>
      startIdleProcess("workerd", "serve", join(path, "run/workerd.capnp")),
    ),
  );
  const ownEnded = once(own!, "exit");
  for (const program of [other!, own!]) {
    const record = { pid: ENDED_PID, hasLock: true, workerd: program.pid };
    await writeFile(join(dir, "run/server.json"), JSON.stringify(record));
    await (await openDataDir(dir)).release();
  }
  expect(await ownEnded).toEqual([null, "SIGKILL"]);
  expect([other!.exitCode, other!.signalCode]).toEqual([null, null]);
  other!.kill();
});

test("PostgreSQL starts although another process has the id of one that was killed", async () => {
  const dataDir = await createPreparedDir();
  const account = await findPostgresAccount(join(dataDir, "postgres"));
  // PostgreSQL ignores processes of other users by itself.
  const program = spawn("sleep", ["1000"], { stdio: "ignore", ...account });
  const pidFile = join(dataDir, "postgres/postmaster.pid");
  await writeFile(pidFile, `${program.pid}\n/proc/self/fd/3\n1000000000\n5432\n`, { mode: 0o600 });
  if (account) await chown(pidFile, account.uid, account.gid);
  const { postgres: password } = (await readStoredSecrets(dataDir))!;
  const postgres = await startPostgres(dataDir, password, createLog(process.stdout));
  expect(postgres.child.pid).not.toBe(program.pid);
  program.kill();
  await postgres.stop();
  const otherSecrets = startPostgres(dataDir, "of another directory", createLog(process.stdout));
  await expect(otherSecrets).rejects.toThrow("secrets.json is not the file that this database");
  await rm(dataDir, { recursive: true });
});

/** A file system can be mounted by root on Linux only. */
test("a full disk prevents a start with the remedy, but not a restart of workerd", async (context) => {
  const disk = await mountSmallDisk(join(dir, "disk"), 1);
  if (!disk) return context.skip();
  try {
    const opened = await openDataDir(disk.path);
    disk.fill();
    await opened.recordWorkerd(ENDED_PID);
    await opened.release();
    disk.fill();
    await expect(openDataDir(disk.path)).rejects.toThrow("free some space on its disk");
  } finally {
    await disk.unmount();
  }
});

test("sockets whose path would be too long are in a directory that is removed with the last of them", async () => {
  const path = join(dir, "long".repeat(30));
  const opened = await openDataDir(path);
  expect(dirname(opened.socketsDir)).not.toContain("long");
  const record = await readFile(join(path, "run/server.json"), "utf8");
  await opened.release();
  await expect(stat(opened.socketsDir)).rejects.toThrow("ENOENT");
  // As a server leaves it that is killed.
  await mkdir(opened.socketsDir);
  await writeFile(join(path, "run/server.json"), record);
  await (await openDataDir(path)).release();
  await expect(stat(opened.socketsDir)).rejects.toThrow("ENOENT");
});

test("one of them gets it, and the others say that it is in use", async () => {
  for (let round = 0; round < ROUNDS; round += 1) {
    const programs = Array.from({ length: STARTS }, startProgram);
    await Promise.all(programs.map(({ readLine }) => readLine()));
    await writeFile(join(dir, "run/server.json"), JSON.stringify({ pid: ENDED_PID }));
    for (const { child } of programs) child.stdin!.write("\n");
    const results = await Promise.all(programs.map(({ readLine }) => readLine()));
    const refusals = results.filter((text) => text !== "opened");
    expect(refusals).toHaveLength(STARTS - 1);
    for (const text of refusals) {
      expect(text).toMatch(/^DATA_DIR: in use by (the|another) server/);
    }
    const exits = programs.map(({ child }) => once(child, "exit"));
    for (const { child } of programs) child.stdin!.end();
    await Promise.all(exits);
  }
});
