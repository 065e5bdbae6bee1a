/**
 * Somebody who has just cloned the repository: a copy of what git tracks, a home directory with nothing in
 * it, and the README. Installed packages are shared with this checkout, because `npm ci` has just run here.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../../self-host/build/build.ts";
import { createTemporaryDir } from "./directories.ts";
import { getUserPath, typeCommand, type TerminalCommand } from "./terminal.ts";

const run = promisify(execFile);

export interface CleanCheckout extends AsyncDisposable {
  /** Types a command in the directory of the clone. */
  type(command: string, options?: { atTerminal?: boolean }): TerminalCommand;
}

export async function createCleanCheckout(env: Record<string, string>): Promise<CleanCheckout> {
  const dir = await createTemporaryDir();
  const [clone, home] = [join(dir, "underpass"), join(dir, "home")];
  await mkdir(home);
  for (const file of await listTrackedFiles()) await cp(join(ROOT, file), join(clone, file));
  await symlink(join(ROOT, "node_modules"), join(clone, "node_modules"));
  const environment = {
    HOME: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    npm_config_offline: "true",
    npm_config_update_notifier: "false",
    ...env,
  };
  // What `npm ci` does here beyond installing packages.
  await run("npm", ["run", "--silent", "prepare"], {
    cwd: clone,
    env: { PATH: getUserPath(), ...environment },
  });
  return {
    type: (command, options) => typeCommand(command, { cwd: clone, env: environment, ...options }),
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}

async function listTrackedFiles(): Promise<string[]> {
  // The checkout may be another user's, whom git would not trust without being told.
  const args = ["-c", "safe.directory=*", "ls-files", "-z"];
  const { stdout } = await run("git", args, { cwd: ROOT });
  return stdout.split("\0").filter((file) => file !== "");
}

/** The lines of the shell blocks under a heading of the README, block by block. */
export async function readReadmeCommands(heading: string): Promise<string[][]> {
  const readme = await readFile(join(ROOT, "README.md"), "utf8");
  const section = readme.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const blocks = section.matchAll(/^```sh\n(.*?)^```$/gms);
  return [...blocks].map(([, block = ""]) => block.trim().split("\n"));
}
