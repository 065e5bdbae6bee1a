/** Builds the dashboard into `dist/dashboard`, with compressed copies of each file: `.br` and `.gz`. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, gzip, gzipSync } from "node:zlib";
import { z } from "zod";
import { isUpToDate, listFiles, writeStamp } from "./build-stamp.ts";

const ROOT = join(import.meta.dirname, "../..");
const SOURCE_DIR = join(ROOT, "dashboard");
const STAMP = join(ROOT, "dist/dashboard-sources.json");
export const DASHBOARD_DIR = join(ROOT, "dist/dashboard");

/** Limit of all that a browser loads before it shows the first page, compressed with gzip. */
const FIRST_LOAD_MAX_BYTES = 200 * 1024;
/** The document, a script and a style sheet. */
const FIRST_LOAD_MAX_FILES = 3;

/** Vite's list of the built files: by the path of their source, or `_` and the name of a shared chunk. */
const Manifest = z.record(
  z.string(),
  z.object({
    file: z.string(),
    isEntry: z.boolean().optional(),
    /** Keys of chunks that it imports statically. */
    imports: z.array(z.string()).default([]),
    css: z.array(z.string()).default([]),
  }),
);

/** Builds the dashboard unless its files are up to date. */
export async function buildDashboardIfChanged(): Promise<void> {
  const isBuilt = existsSync(join(DASHBOARD_DIR, "index.html"));
  if (!isBuilt || !(await isUpToDate(STAMP))) await buildDashboard();
}

async function buildDashboard(): Promise<void> {
  const startedAtMs = Date.now();
  await runVite();
  const files = await listFiles(DASHBOARD_DIR);
  await Promise.all(files.map(compress));
  const { fileCount, byteCount } = await measureFirstLoad();
  if (fileCount > FIRST_LOAD_MAX_FILES || byteCount > FIRST_LOAD_MAX_BYTES) {
    throw new Error(
      `the dashboard's first load is ${fileCount} files of ${byteCount} bytes compressed, over its limit of ${FIRST_LOAD_MAX_FILES} files of ${FIRST_LOAD_MAX_BYTES} bytes`,
    );
  }
  await writeStamp(STAMP, await listInputs(), startedAtMs);
}

/** In a process of its own, because the build reads NODE_ENV: React has another, larger build for other values. */
async function runVite(): Promise<void> {
  const packageFile = createRequire(import.meta.url).resolve("vite/package.json");
  const program = join(dirname(packageFile), "bin/vite.js");
  const env = { ...process.env, NODE_ENV: "production" };
  await promisify(execFile)(process.execPath, [program, "build", SOURCE_DIR], { env });
}

async function compress(path: string): Promise<void> {
  const content = await readFile(path);
  await Promise.all([
    writeFile(`${path}.br`, await promisify(brotliCompress)(content)),
    writeFile(`${path}.gz`, await promisify(gzip)(content, { level: 9 })),
  ]);
}

/** The document, the entry with all modules that it imports statically, and their styles. */
async function measureFirstLoad(): Promise<{ fileCount: number; byteCount: number }> {
  const manifest = Manifest.parse(
    JSON.parse(await readFile(join(DASHBOARD_DIR, ".vite/manifest.json"), "utf8")),
  );
  const entries = Object.keys(manifest).filter((key) => manifest[key]?.isEntry);
  const keys = new Set(entries);
  for (const key of keys) for (const imported of manifest[key]?.imports ?? []) keys.add(imported);
  const chunks = [...keys].flatMap((key) => manifest[key] ?? []);
  const files = new Set(["index.html", ...chunks.flatMap(({ file, css }) => [file, ...css])]);
  const sizes = [...files].map(
    async (file) => gzipSync(await readFile(join(DASHBOARD_DIR, file))).length,
  );
  const byteCount = (await Promise.all(sizes)).reduce((sum, bytes) => sum + bytes, 0);
  return { fileCount: files.size, byteCount };
}

async function listInputs(): Promise<string[]> {
  const directories = [SOURCE_DIR, join(ROOT, "protocol"), join(ROOT, "shared")];
  const others = ["self-host/build/dashboard.ts", "package-lock.json"];
  return [
    ...(await Promise.all(directories.map(listFiles))).flat(),
    ...others.map((path) => join(ROOT, path)),
  ];
}
