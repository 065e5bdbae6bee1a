/** The npm package `underpass`, packed and installed into an empty directory as a user does it, without a network. */
import { execFile } from "node:child_process";
import { mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { ROOT } from "../../../self-host/build/build.ts";
import { createTemporaryDir } from "../directories.ts";
import { NODE_ENVIRONMENT } from "../node-environment.ts";

const run = promisify(execFile);

export interface InstalledAgent extends AsyncDisposable {
  /** The directory of a project whose only dependency is the package. */
  project: string;
  /** The size of the compressed package. */
  tarballBytes: number;
}

export async function installAgent(): Promise<InstalledAgent> {
  const dir = await createTemporaryDir();
  const env = { ...NODE_ENVIRONMENT, HOME: dir, npm_config_update_notifier: "false" };
  await run("npm", ["pack", "--silent", "--pack-destination", dir], {
    cwd: join(ROOT, "agent"),
    env,
  });
  const [tarball = ""] = (await readdir(dir)).filter((name) => name.endsWith(".tgz"));
  const project = join(dir, "project");
  await mkdir(project);
  await writeFile(join(project, "package.json"), '{"private":true,"type":"module"}');
  const args = ["install", "--offline", "--no-audit", "--no-fund", join(dir, tarball)];
  await run("npm", args, { cwd: project, env });
  return {
    project,
    tarballBytes: (await stat(join(dir, tarball))).size,
    [Symbol.asyncDispose]: () => rm(dir, { recursive: true, force: true }),
  };
}
