/**
 * Removes what the npm package `node` leaves behind after its installation: a second package below its own, whose
 * binary it has hard-linked, with 67 MB of C headers that no program here needs. npm removes that package as well at
 * the next `npm install`, because package-lock.json does not list it.
 */
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "./build.ts";

export async function pruneNode(packageDir: string): Promise<void> {
  const isInstalled = await stat(join(packageDir, "bin/node")).catch(() => undefined);
  if (!isInstalled) return;
  // Only space would be saved: a system that does not let go of the running binary keeps the package.
  await rm(join(packageDir, "node_modules"), { recursive: true, force: true }).catch(() => {});
}

if (import.meta.main) await pruneNode(join(ROOT, "node_modules/node"));
