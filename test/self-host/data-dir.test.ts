/** Servers that start with the same data directory at the same time, after one that was killed. */
import { type ChildProcess, spawn } from "node:child_process";
import { on, once } from "node:events";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTemporaryDir } from "../harness/directories.ts";

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
