/**
 * Builds the bundles: the Worker (`dist/worker`, the same for workerd and Cloudflare), the agent with its npm package, and the
 * files of the dashboard (`dist/dashboard`).
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";
import { buildAgentPackage, buildAgentPackageIfChanged } from "./agent-package.ts";
import { isUpToDate, listFiles, writeStamp } from "./build-stamp.ts";
import { buildDashboardIfChanged } from "./dashboard.ts";
import { writeOutputs } from "./outputs.ts";
import { withoutUnusedParts } from "./plugins.ts";
import { WORKER_ENTRY_POINTS, writeWorkerModules } from "./worker-modules.ts";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const WORKER_DIR = join(ROOT, "dist/worker");
/** The modules of each entry point. */
export const WORKER_MODULES = join(ROOT, "dist/worker-modules.json");
const WORKER_STAMP = join(ROOT, "dist/worker-sources.json");

/**
 * Limit of all modules together, compressed, without their source maps. Cloudflare accepts 10 MB, but a fast cold start
 * needs far less. The reference of the API, which is loaded with `/docs` and `/openapi.json` only, has 30 KiB of it.
 */
export const WORKER_BUNDLE_MAX_BYTES = 500 * 1024;

export interface WorkerBundle {
  /** Compressed size of all modules. */
  gzipBytes: number;
  /** Sources that an isolate evaluates before its first request: all that the edge path needs. */
  eagerSources: string[];
}

/** Builds the Worker unless its bundle is up to date. */
async function buildWorkerIfChanged(): Promise<void> {
  const isBuilt = existsSync(join(WORKER_DIR, "index.js")) && existsSync(WORKER_MODULES);
  if (!isBuilt || !(await isUpToDate(WORKER_STAMP))) await buildWorker();
}

export async function buildWorker(): Promise<WorkerBundle> {
  const startedAtMs = Date.now();
  const result = await esbuild.build({
    absWorkingDir: ROOT,
    entryPoints: WORKER_ENTRY_POINTS,
    outdir: WORKER_DIR,
    bundle: true,
    write: false,
    metafile: true,
    splitting: true,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    plugins: [withoutUnusedParts, inlinePages],
    loader: { ".wasm": "copy" },
    minify: true,
    // So that a stack trace in a log can be read. Wrangler uploads the maps beside the Worker.
    sourcemap: "linked",
    sourcesContent: false,
    // All modules in one directory, so that each import is `./x`.
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    logLevel: "error",
  });
  await writeOutputs(WORKER_DIR, result.outputFiles);
  await writeWorkerModules(WORKER_MODULES, result.metafile);
  await writeStamp(WORKER_STAMP, await listWorkerInputs(result.metafile), startedAtMs);
  const gzipBytes = result.outputFiles
    .filter(({ path }) => !path.endsWith(".map"))
    .reduce((sum, { contents }) => sum + gzipSync(contents).length, 0);
  if (gzipBytes > WORKER_BUNDLE_MAX_BYTES) {
    throw new Error(
      `the Worker's bundle is ${gzipBytes} bytes compressed, over its limit of ${WORKER_BUNDLE_MAX_BYTES}`,
    );
  }
  return {
    gzipBytes,
    eagerSources: findEagerCode(result.metafile, WORKER_ENTRY_POINTS.index).sources,
  };
}

export async function build(): Promise<WorkerBundle> {
  const [bundle] = await Promise.all([buildWorker(), buildServedFiles(buildAgentPackage)]);
  return bundle;
}

/** Builds all that has changed. */
export async function buildIfChanged(): Promise<void> {
  await Promise.all([buildWorkerIfChanged(), buildServedFiles(buildAgentPackageIfChanged)]);
  // A server runs for weeks after its build: esbuild's own process would run as long.
  await esbuild.stop();
}

/** One after the other: the build of the dashboard empties the directory, in which the server serves the package too. */
async function buildServedFiles(buildPackage: () => Promise<void>): Promise<void> {
  await buildDashboardIfChanged();
  await buildPackage();
}

/** `inlinePages` bundles the sources of a page in a build of its own, so this build's metafile does not list them. */
async function listWorkerInputs({ inputs }: esbuild.Metafile): Promise<string[]> {
  const named = Object.keys(inputs).map((path) => join(ROOT, path.replace(/^[a-z-]+:/, "")));
  const others = ["self-host/build/build.ts", "package-lock.json"].map((path) => join(ROOT, path));
  return [...named, ...others, ...(await listFiles(join(ROOT, "dashboard/reference")))];
}

/** Imports an HTML page as one string, with its script and stylesheet bundled and inlined. */
const inlinePages: esbuild.Plugin = {
  name: "whole-pages",
  setup(build) {
    build.onLoad({ filter: /\.html$/ }, async ({ path }) => {
      const page = await readFile(path, "utf8");
      const [, style = ""] = STYLE.exec(page) ?? [];
      const [, script = ""] = SCRIPT.exec(page) ?? [];
      const { outputFiles } = await esbuild.build({
        absWorkingDir: dirname(path),
        entryPoints: [style, script],
        outdir: "/",
        bundle: true,
        write: false,
        format: "iife",
        target: ["es2024", "chrome123", "firefox121", "safari17.5"],
        minify: true,
        legalComments: "none",
        logLevel: "error",
      });
      const bundled = (extension: string) =>
        outputFiles.find((file) => file.path.endsWith(extension))?.text.trim() ?? "";
      const contents = page
        .replace(STYLE, () => `<style>${bundled(".css")}</style>`)
        .replace(SCRIPT, () => `<script>${bundled(".js")}</script>`)
        .replaceAll(/>\s+</g, "><");
      return { contents, loader: "text" };
    });
  },
};
const STYLE = /<link rel="stylesheet" href="(\S+)" \/>/;
const SCRIPT = /<script type="module" src="(\S+)"><\/script>/;

interface EagerCode {
  sources: string[];
  /** The size of the bundle's files. */
  bytes: number;
}

/**
 * Finds the code that is loaded before a module runs: that of its static imports, directly or not. A dynamic `import()` is not
 * followed. @param entryPoint the source of an entry, or of a module that is imported dynamically.
 */
export function findEagerCode({ outputs }: esbuild.Metafile, entryPoint: string): EagerCode {
  const [entry] = Object.entries(outputs).filter(([, output]) => output.entryPoint === entryPoint);
  if (!entry) throw new Error(`the bundle has no entry ${entryPoint}`);
  const eager = new Set([entry[0]]);
  for (const path of eager) {
    for (const { path: imported, kind, external } of outputs[path]?.imports ?? []) {
      if (kind === "import-statement" && !external) eager.add(imported);
    }
  }
  const files = [...eager].map((path) => outputs[path]!);
  return {
    sources: files.flatMap(({ inputs }) => Object.keys(inputs)).sort(),
    bytes: files.reduce((sum, file) => sum + file.bytes, 0),
  };
}

if (import.meta.main) {
  const { gzipBytes } = await build();
  console.log(`dist/worker: ${Math.ceil(gzipBytes / 1024)} KiB compressed`);
}
