/**
 * A clean checkout: a copy of the files that git tracks, with an empty home directory. Installed packages are linked
 * from this checkout, because `npm ci` has just run here. As after `npm ci --omit=dev`, those for development are missing.
 */
import { execFile } from "node:child_process";
import { cp, mkdir, readFile, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../../self-host/build/build.ts";
import { createTemporaryDir } from "./directories.ts";
import { NODE_ENVIRONMENT } from "./node-environment.ts";
import { getUserPath, typeCommand, type TerminalCommand } from "./terminal.ts";

const run = promisify(execFile);

export interface CleanCheckout extends AsyncDisposable {
  /** Runs a command in the directory of the checkout. */
  type(command: string, options?: { atTerminal?: boolean }): TerminalCommand;
  /** Removes what earlier commands stored: the data of the server, and the home directory. */
  clear(): Promise<void>;
}

interface LockFile {
  packages: Record<string, { dev?: boolean }>;
}

export async function createCleanCheckout(env: Record<string, string>): Promise<CleanCheckout> {
  const dir = await createTemporaryDir();
  const [checkout, home] = [join(dir, "underpass"), join(dir, "home")];
  await mkdir(home);
  const files = await listTrackedFiles();
  await Promise.all(files.map((file) => cp(join(ROOT, file), join(checkout, file))));
  await linkPackages(join(checkout, "node_modules"));
  const environment = {
    HOME: home,
    XDG_CONFIG_HOME: join(home, ".config"),
    npm_config_offline: "true",
    npm_config_omit: "dev",
    npm_config_update_notifier: "false",
    ...env,
  };
  // The part of `npm ci` that follows the installation of packages.
  await run("npm", ["run", "--silent", "prepare"], {
    cwd: checkout,
    env: { ...NODE_ENVIRONMENT, PATH: getUserPath(), ...environment },
  });
  return {
    type: (command, options) =>
      typeCommand(command, { cwd: checkout, env: environment, ...options }),
    async clear() {
      await rm(join(checkout, ".underpass"), { recursive: true, force: true });
      await rm(home, { recursive: true });
      await mkdir(home);
    },
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}

/** Paths below node_modules of the packages that `npm ci --omit=dev` installs on this platform, before its build. */
export async function listServerPackages(): Promise<string[]> {
  const text = await readFile(join(ROOT, "package-lock.json"), "utf8");
  const installed = await readFile(join(ROOT, "node_modules/.package-lock.json"), "utf8");
  const { packages: hidden } = JSON.parse(installed) as LockFile;
  return Object.entries((JSON.parse(text) as LockFile).packages)
    .filter(([path, { dev }]) => path.startsWith("node_modules/") && !dev && path in hidden)
    .map(([path]) => path.replace(/^node_modules\//, ""));
}

/** Installs packages in a checkout as npm does: its workspaces are packages too, and `agent` is the one with a command. */
async function linkPackages(modules: string): Promise<void> {
  const installed = join(ROOT, "node_modules");
  const paths = await listServerPackages();
  for (const path of paths.filter((each) => !each.includes("node_modules/"))) {
    if (["underpass", "underpass-dashboard"].includes(path)) continue;
    await mkdir(dirname(join(modules, path)), { recursive: true });
    await symlink(join(installed, path), join(modules, path));
  }
  await cp(join(installed, ".bin"), join(modules, ".bin"), {
    recursive: true,
    verbatimSymlinks: true,
  });
  await symlink("../agent", join(modules, "underpass"));
  await rm(join(modules, ".bin/underpass"), { force: true });
  await symlink("../underpass/bin/launch.js", join(modules, ".bin/underpass"));
}

async function listTrackedFiles(): Promise<string[]> {
  // The checkout may belong to another user, whose directories git rejects by default.
  const args = ["-c", "safe.directory=*", "ls-files", "-z"];
  const { stdout } = await run("git", args, { cwd: ROOT });
  return stdout.split("\0").filter((file) => file !== "");
}

/** The commands under a heading of the README: for each shell block, its lines. */
export async function readReadmeCommands(heading: string): Promise<string[][]> {
  const readme = await readFile(join(ROOT, "README.md"), "utf8");
  const section = readme.split(/^## /m).find((text) => text.startsWith(`${heading}\n`)) ?? "";
  const blocks = section.matchAll(/^```sh\n(.*?)^```$/gms);
  return [...blocks].map(([, block = ""]) => block.trim().split("\n"));
}
