/** The agent of a user without a home directory, such as one of a container whose user id belongs to no user. */
import { execFile } from "node:child_process";
import { copyFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { createTemporaryDir } from "../../../harness/directories.ts";

const ROOT = join(import.meta.dirname, "../../../..");
/** Node.js fails so when neither HOME nor the system's list of users has one. */
const WITHOUT_HOME = `data:text/javascript,
  import os from "node:os";
  import { syncBuiltinESMExports } from "node:module";
  os.homedir = () => { throw new Error("uv_os_homedir returned ENOENT"); };
  syncBuiltinESMExports();`;

async function run(script: string, args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const options = { cwd: ROOT, env: { PATH: process.env.PATH, ...env } };
  const all = ["--no-warnings", "--import", WITHOUT_HOME, script, ...args];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, all, options).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  return stdout + stderr;
}

test("starts without its compile cache", async () => {
  const directory = await createTemporaryDir();
  await Promise.all(["bin", "dist"].map((name) => mkdir(join(directory, name))));
  await writeFile(join(directory, "package.json"), '{"type":"module"}');
  await writeFile(join(directory, "dist/underpass.js"), 'console.log("started");');
  const launcher = join(directory, "bin/launch.js");
  await copyFile(join(ROOT, "agent/bin/launch.js"), launcher);
  expect(await run(launcher, [])).toBe("started\n");
});

test("needs none with a server and a token of the environment, and otherwise says what to set", async () => {
  const agent = join(ROOT, "agent/bin/underpass.ts");
  const args = ["tunnels", "--server", "http://127.0.0.1:1"];
  expect(await run(agent, args, { UNDERPASS_TOKEN: "AQID" })).toMatch(/refuses connections/);
  expect(await run(agent, args)).toBe(
    "underpass: this user has no home directory for the agent's settings; set HOME or XDG_CONFIG_HOME to a directory\n",
  );
});
