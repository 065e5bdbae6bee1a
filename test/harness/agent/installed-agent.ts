/** The npm package `underpass`. */
import { execFile } from "node:child_process";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../../../self-host/build/build.ts";
import { listFiles } from "../../../self-host/build/build-stamp.ts";
import { createTemporaryDir } from "../directories.ts";
import { NODE_ENVIRONMENT } from "../node-environment.ts";

const run = promisify(execFile);
/** Nothing listens there: the package needs no registry. */
const NO_REGISTRY = "http://127.0.0.1:1/";

export interface InstalledAgent extends AsyncDisposable {
  /** The directory of a project whose only dependency is the package. */
  project: string;
}

/** Installs the package that a server serves into an empty directory, as a user does it. @param server its URL. */
export async function installAgent(server: string): Promise<InstalledAgent> {
  const dir = await createTemporaryDir();
  const project = join(dir, "project");
  await mkdir(project);
  await writeFile(join(project, "package.json"), '{"private":true,"type":"module"}');
  const url = new URL("/underpass.tgz", server).href;
  const env = { ...getEnvironment(dir), npm_config_registry: NO_REGISTRY };
  await run("npm", ["install", "--no-audit", "--no-fund", url], { cwd: project, env });
  return { project, [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }) };
}

export interface PackedAgent extends AsyncDisposable {
  dir: string;
  /** Their paths in `dir`, sorted. */
  files: string[];
}

/** The package that npm makes for a registry, unpacked. */
export async function packAgent(): Promise<PackedAgent> {
  const parent = await createTemporaryDir();
  const args = ["pack", "--silent", "--pack-destination", parent];
  await run("npm", args, { cwd: join(ROOT, "agent"), env: getEnvironment(parent) });
  const [tarball = ""] = (await readdir(parent)).filter((name) => name.endsWith(".tgz"));
  await run("tar", ["-xzf", tarball], { cwd: parent });
  const dir = join(parent, "package");
  return {
    dir,
    files: (await listFiles(dir)).map((path) => relative(dir, path)).sort(),
    [Symbol.asyncDispose]: () => rm(parent, { recursive: true, force: true }),
  };
}

function getEnvironment(home: string) {
  return { ...NODE_ENVIRONMENT, HOME: home, npm_config_update_notifier: "false" };
}
