/**
 * Runs after an installation and its build, and removes from `node_modules` files that nothing here reads.
 *
 * - The npm package `node` leaves a second package below its own, whose binary it has hard-linked, with 67 MB of C headers.
 *   npm removes that package as well at the next `npm install`, because package-lock.json does not list it.
 * - An installation without development dependencies (`npm ci --omit=dev`) is for running the server, which serves the
 *   dashboard as files. The packages that only the build of the dashboard needs are 88 MB.
 */
import { readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

const ROOT = join(import.meta.dirname, "../..");
const DASHBOARD = "dashboard";

const Dependencies = z.record(z.string(), z.string()).default({});
const LockFile = z.object({
  /** By path, such as `node_modules/zod`; the root has an empty one. */
  packages: z.record(
    z.string(),
    z.object({
      dependencies: Dependencies,
      optionalDependencies: Dependencies,
      peerDependencies: Dependencies,
    }),
  ),
});
type Packages = z.infer<typeof LockFile>["packages"];

/** @param packageDir of the package `node`. */
async function pruneNode(packageDir: string): Promise<void> {
  const isInstalled = await stat(join(packageDir, "bin/node")).catch(() => undefined);
  if (!isInstalled) return;
  await removeIfPossible(join(packageDir, "node_modules"));
}

/** @returns the paths of the packages that only the dashboard depends on, directly or not. */
export async function listDashboardPackages(root: string): Promise<string[]> {
  const text = await readFile(join(root, "package-lock.json"), "utf8");
  const { packages } = LockFile.parse(JSON.parse(text));
  const servers = findDependencies(packages, ["", "agent"]);
  return [...findDependencies(packages, [DASHBOARD])].filter((path) => !servers.has(path));
}

/** @returns the paths of all packages that these depend on, directly or not. */
function findDependencies(packages: Packages, paths: string[]): Set<string> {
  const found = new Set<string>();
  const waiting = [...paths];
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const { dependencies, optionalDependencies, peerDependencies } = packages[path] ?? {};
    for (const name of Object.keys({
      ...dependencies,
      ...optionalDependencies,
      ...peerDependencies,
    })) {
      const dependency = resolvePackage(packages, path, name);
      if (dependency === undefined || found.has(dependency)) continue;
      found.add(dependency);
      waiting.push(dependency);
    }
  }
  return found;
}

/** As Node.js does: in the `node_modules` of the package itself, or else of the nearest directory above it. */
function resolvePackage(packages: Packages, from: string, name: string): string | undefined {
  const segments = from === "" ? [] : from.split("/");
  for (let count = segments.length; count >= 0; count -= 1) {
    const path = [...segments.slice(0, count), "node_modules", name].join("/");
    if (path in packages) return path;
  }
  return undefined;
}

/** Only space would be saved: a system that does not let go of a running program keeps the package. */
async function removeIfPossible(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true }).catch(() => {});
}

if (import.meta.main) {
  await pruneNode(join(ROOT, "node_modules/node"));
  const omitted = process.env.npm_config_omit?.split(/\s+/) ?? [];
  if (omitted.includes("dev")) {
    const paths = await listDashboardPackages(ROOT);
    await Promise.all(paths.map((path) => removeIfPossible(join(ROOT, path))));
  }
}
