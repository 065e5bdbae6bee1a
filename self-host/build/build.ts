/**
 * Bundles what runs without its sources: the Worker (`dist/worker`, served by workerd and by Cloudflare
 * alike) and the agent (`dist/agent`, what `npx underpass` starts).
 */
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";
import { isUpToDate, listFiles, writeStamp } from "./build-stamp.ts";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const WORKER_DIR = join(ROOT, "dist/worker");
const AGENT_DIR = join(ROOT, "dist/agent");
const WORKER_STAMP = join(ROOT, "dist/worker-sources.json");

/** All modules together, compressed. Cloudflare takes 10 MB; a cold start wants far less. */
export const WORKER_BUNDLE_MAX_BYTES = 512 * 1024;

export interface WorkerBundle {
  /** Compressed size of all modules. */
  gzipBytes: number;
  /** Sources that an isolate loads before it has seen a request: what the edge path runs with. */
  eagerSources: string[];
}

/** Builds the Worker unless its bundle is of today's sources already. */
export async function buildWorkerIfChanged(): Promise<void> {
  const isBuilt = existsSync(join(WORKER_DIR, "index.js"));
  if (!isBuilt || !(await isUpToDate(WORKER_STAMP))) await buildWorker();
}

export async function buildWorker(): Promise<WorkerBundle> {
  const startedAtMs = Date.now();
  const result = await esbuild.build({
    absWorkingDir: ROOT,
    entryPoints: ["workers/index.ts"],
    outdir: WORKER_DIR,
    bundle: true,
    write: false,
    metafile: true,
    splitting: true,
    format: "esm",
    target: "es2024",
    conditions: ["workerd", "worker", "browser"],
    external: ["cloudflare:*", "node:*"],
    plugins: [englishOnly, smtpSockets, inlinePages],
    loader: { ".wasm": "copy" },
    minifyWhitespace: true,
    minifySyntax: true,
    // Flat, so that every module names every other as `./x`.
    chunkNames: "[name]-[hash]",
    assetNames: "[name]-[hash]",
    logLevel: "error",
  });
  await writeOutputs(WORKER_DIR, result.outputFiles);
  await writeStamp(WORKER_STAMP, await listWorkerInputs(result.metafile), startedAtMs);
  const gzipBytes = result.outputFiles.reduce(
    (sum, file) => sum + gzipSync(file.contents).length,
    0,
  );
  if (gzipBytes > WORKER_BUNDLE_MAX_BYTES) {
    throw new Error(
      `the Worker's bundle is ${gzipBytes} bytes compressed, over its limit of ${WORKER_BUNDLE_MAX_BYTES}`,
    );
  }
  return { gzipBytes, eagerSources: eagerSources(result.metafile) };
}

export async function buildAgent(): Promise<void> {
  const result = await esbuild.build({
    absWorkingDir: ROOT,
    entryPoints: { underpass: "agent/bin/underpass.ts", expose: "agent/expose.ts" },
    outdir: AGENT_DIR,
    bundle: true,
    write: false,
    splitting: true,
    format: "esm",
    platform: "node",
    target: "node20",
    packages: "external",
    chunkNames: "[name]-[hash]",
    logLevel: "error",
  });
  await writeOutputs(AGENT_DIR, result.outputFiles);
  await chmod(join(AGENT_DIR, "underpass.js"), 0o755);
}

export async function build(): Promise<WorkerBundle> {
  const [bundle] = await Promise.all([buildWorker(), buildAgent()]);
  return bundle;
}

/** The sources of pages are bundled by themselves (`wholePages`), so that esbuild does not list them. */
async function listWorkerInputs({ inputs }: esbuild.Metafile): Promise<string[]> {
  const named = Object.keys(inputs).map((path) => join(ROOT, path.replace(/^[a-z-]+:/, "")));
  const others = ["self-host/build/build.ts", "package-lock.json"].map((path) => join(ROOT, path));
  return [...named, ...others, ...(await listFiles(join(ROOT, "dashboard")))];
}

/**
 * Leaves a directory with exactly these files. Unchanged ones are not touched and changed ones replaced
 * whole, so that a server which starts meanwhile never reads half a module.
 */
async function writeOutputs(dir: string, files: esbuild.OutputFile[]): Promise<void> {
  await mkdir(dir, { recursive: true });
  for (const file of files) {
    const current = await readFile(file.path).catch(() => undefined);
    if (current?.equals(file.contents)) continue;
    const fresh = `${file.path}.${process.pid}.new`;
    await writeFile(fresh, file.contents);
    await rename(fresh, file.path);
  }
  const wanted = new Set(files.map((file) => basename(file.path)));
  for (const name of await readdir(dir)) {
    if (!wanted.has(name) && !name.endsWith(".new")) await rm(join(dir, name), { force: true });
  }
}

/** zod speaks fifty languages, all of them in one object that no bundler can take apart. Ours is English. */
const englishOnly: esbuild.Plugin = {
  name: "english-only",
  setup(build) {
    build.onLoad({ filter: /zod\/v4\/locales\/index\.js$/ }, () => ({
      contents: 'export { default as en } from "./en.js";',
    }));
  },
};

/** A page of dashboard/ as one text: its script and style are bundled, and stand where they are named. */
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

/** worker-mailer opens its connections through workers/integrations/mail/smtp-socket.ts, which says why. */
const smtpSockets: esbuild.Plugin = {
  name: "guarded-sockets",
  setup(build) {
    build.onResolve({ filter: /^cloudflare:sockets$/ }, ({ importer }) =>
      importer.includes("/node_modules/worker-mailer/")
        ? { path: join(ROOT, "workers/integrations/mail/smtp-socket.ts") }
        : undefined,
    );
  },
};

/** The closure of the entry's static imports; `import()` ends it. */
function eagerSources({ outputs }: esbuild.Metafile): string[] {
  const entry = relative(ROOT, join(WORKER_DIR, "index.js"));
  const eager = new Set([entry]);
  for (const path of eager) {
    for (const { path: imported, kind, external } of outputs[path]?.imports ?? []) {
      if (kind === "import-statement" && !external) eager.add(imported);
    }
  }
  return [...eager].flatMap((path) => Object.keys(outputs[path]?.inputs ?? {})).sort();
}

if (import.meta.main) {
  const { gzipBytes } = await build();
  console.log(`dist/worker: ${Math.ceil(gzipBytes / 1024)} KiB compressed`);
}
