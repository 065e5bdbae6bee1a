/**
 * The modules of each entry point of the Worker. A self-hosted server gives each of its isolates only the modules that it can
 * load, because workerd compiles all that it is given, and the garbage collector traces them.
 */
import { readFile, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import type * as esbuild from "esbuild";
import { z } from "zod";

/** The sources of the entry points, by the names of their modules. */
export const WORKER_ENTRY_POINTS = {
  index: "workers/index.ts",
  edge: "workers/edge/entry.ts",
} as const;

export type WorkerEntryPoint = keyof typeof WORKER_ENTRY_POINTS;

const Modules = z.record(z.enum(["index", "edge"]), z.array(z.string()));

/** @param path of the list. */
export async function writeWorkerModules(path: string, metafile: esbuild.Metafile): Promise<void> {
  const modules = {
    index: findModules(metafile, WORKER_ENTRY_POINTS.index),
    edge: findModules(metafile, WORKER_ENTRY_POINTS.edge),
  };
  await writeFile(path, JSON.stringify(modules satisfies z.infer<typeof Modules>));
}

/** @returns names of files, the entry point's first, as workerd requires. */
export async function readWorkerModules(
  path: string,
  entryPoint: WorkerEntryPoint,
): Promise<string[]> {
  return Modules.parse(JSON.parse(await readFile(path, "utf8")))[entryPoint];
}

/** The files that an entry point imports, directly or not, statically or dynamically. */
function findModules({ outputs }: esbuild.Metafile, entryPoint: string): string[] {
  const entry = Object.keys(outputs).find((path) => outputs[path]!.entryPoint === entryPoint);
  if (entry === undefined) throw new Error(`the bundle has no entry ${entryPoint}`);
  const found = new Set([entry]);
  for (const path of found) {
    for (const { path: imported, external } of outputs[path]?.imports ?? [])
      if (!external) found.add(imported);
  }
  return Array.from(found, (path) => basename(path));
}
