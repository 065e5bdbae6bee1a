/**
 * Builds the npm package `underpass`: what agent/ contains of it, with the bundle, the type declarations of the library and the
 * licenses of all code in the bundle in agent/dist, and the package itself as the file that every server serves at
 * `/underpass.tgz`. npm runs this before `npm pack` and `npm publish`.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, readdir, readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { gzipSync } from "node:zlib";
import * as esbuild from "esbuild";
import { createPadding, formatTarHeader, TAR_END } from "../backup/tar.ts";
import { isUpToDate, writeStamp } from "./build-stamp.ts";
import { DASHBOARD_DIR } from "./dashboard.ts";
import { writeOutput, writeOutputs } from "./outputs.ts";
import { loadBuiltins, withoutUnusedParts } from "./plugins.ts";

const ROOT = join(import.meta.dirname, "../..");
const SOURCE_DIR = join(ROOT, "agent");
const BUNDLE_DIR = join(SOURCE_DIR, "dist");
const STAMP = join(ROOT, "dist/agent-sources.json");
export const AGENT_PACKAGE = join(DASHBOARD_DIR, "underpass.tgz");
/** The hash of the package, which is its ETag. */
const AGENT_PACKAGE_HASH = `${AGENT_PACKAGE}.sha256`;

/** The public interface of the library, which only declares. */
const LIBRARY = "agent/library/types.ts";
const LICENSE = "LICENSE";
/** Beside the modules of the bundle. */
const DECLARATIONS = "expose.d.ts";
const LICENSES = "licenses.txt";
/** What the package contains besides the bundle; paths are relative to agent/. */
const PACKAGE_FILES = ["README.md", "package.json", "underpass.schema.json"];
/** The programs, which npm makes executable. */
const PROGRAMS = ["bin/launch.js"];

/** Settings of the agent's bundles: with its libraries, for the oldest supported Node.js. */
export const AGENT_BUNDLE = {
  absWorkingDir: ROOT,
  bundle: true,
  platform: "node",
  target: "node20",
  plugins: [withoutUnusedParts, loadBuiltins],
  minify: true,
  // Node.js prints the whole line of an uncaught error: in a program that uses the library, that is one of these.
  lineLimit: 120,
  logLevel: "error",
} satisfies esbuild.BuildOptions;

/** Builds the package unless it is up to date. */
export async function buildAgentPackageIfChanged(): Promise<void> {
  const isBuilt = existsSync(AGENT_PACKAGE_HASH) && existsSync(join(BUNDLE_DIR, "underpass.js"));
  if (!isBuilt || !(await isUpToDate(STAMP))) await buildAgentPackage();
}

export async function buildAgentPackage(): Promise<void> {
  const startedAtMs = Date.now();
  const { inputs, outputs } = await buildAgent();
  await writePackage(Object.keys(outputs));
  const bundled = Object.keys(inputs).filter((path) => !path.startsWith("builtin:"));
  const copied = [...PACKAGE_FILES, ...PROGRAMS].map((path) => join("agent", path));
  const others = ["package-lock.json", LICENSE, LIBRARY, "self-host/build/agent-package.ts"];
  const paths = [...bundled, ...copied, ...others].map((path) => join(ROOT, path));
  await writeStamp(STAMP, paths, startedAtMs);
}

/**
 * Builds the agent with its libraries, so that its package has no dependencies.
 * @returns esbuild's description of the bundle; paths are relative to `ROOT`.
 */
export async function buildAgent(): Promise<esbuild.Metafile> {
  const { outputFiles, metafile } = await esbuild.build({
    ...AGENT_BUNDLE,
    format: "esm",
    entryPoints: { underpass: "agent/bin/underpass.ts", expose: "agent/expose.ts" },
    outdir: BUNDLE_DIR,
    write: false,
    metafile: true,
    splitting: true,
    chunkNames: "[name]-[hash]",
  });
  await writeOutputs(BUNDLE_DIR, [
    ...outputFiles,
    { path: join(BUNDLE_DIR, DECLARATIONS), contents: await readFile(join(ROOT, LIBRARY)) },
    { path: join(BUNDLE_DIR, LICENSES), contents: await collectLicenses(metafile) },
  ]);
  await copyFile(join(ROOT, LICENSE), join(SOURCE_DIR, LICENSE));
  return metafile;
}

async function collectLicenses({ inputs }: esbuild.Metafile): Promise<Buffer> {
  const packages = new Set(
    Object.keys(inputs).flatMap((path) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []),
  );
  const licenses = await Promise.all([...packages].sort().map(readLicense));
  const text = `The bundle contains code of these packages.\n\n${licenses.join("\n\n")}\n`;
  return Buffer.from(text);
}

/** @returns the license of a package, or its name for the few packages without such a file. */
async function readLicense(path: string): Promise<string> {
  const directory = join(ROOT, path);
  const name = (await readdir(directory)).find((file) => /^licen[cs]e/i.test(file));
  const manifest = await readFile(join(directory, "package.json"), "utf8");
  const text = name && (await readFile(join(directory, name), "utf8"));
  const { license } = JSON.parse(manifest) as { license: string };
  return `${path.replace("node_modules/", "")} (${license})\n\n${text?.trim() ?? ""}`;
}

/**
 * The same content gives the same bytes. `npm pack` would need npm, and most of a second.
 *
 * @param modules of the bundle; paths are relative to `ROOT`. The directory may also have files that another build is writing.
 */
async function writePackage(modules: string[]): Promise<void> {
  const bundle = [...modules.map((path) => basename(path)), DECLARATIONS, LICENSES];
  const built = bundle.map((name) => join("dist", name));
  const paths = [LICENSE, ...PACKAGE_FILES, ...PROGRAMS, ...built].sort();
  const entries = await Promise.all(paths.map(formatEntry));
  const contents = gzipSync(Buffer.concat([...entries.flat(), TAR_END]), { level: 9 });
  const hash = createHash("sha256").update(contents).digest("hex");
  await writeOutput({ path: AGENT_PACKAGE, contents });
  await writeOutput({ path: AGENT_PACKAGE_HASH, contents: Buffer.from(hash) });
}

/** @param path relative to agent/. */
async function formatEntry(path: string): Promise<Buffer[]> {
  const content = await readFile(join(SOURCE_DIR, path));
  const mode = PROGRAMS.includes(path) ? 0o755 : 0o644;
  const header = formatTarHeader({ path: `package/${path}`, size: content.length }, mode);
  return [header, content, createPadding(content.length)];
}

if (import.meta.main) await buildAgent();
