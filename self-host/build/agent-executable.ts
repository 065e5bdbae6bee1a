/**
 * Builds the agent as one executable file that needs no Node.js, with Node's single executable feature: a copy of a `node`
 * program into which the agent's bundle is injected.
 *
 *     npm run executable --workspace agent -- [--platform linux-arm64] [--node FILE] [--out FILE]
 *
 * docs/operators/releasing.md describes where the `node` programs of other platforms come from.
 */
import { execFile } from "node:child_process";
import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs, promisify } from "node:util";
import * as esbuild from "esbuild";
import { AGENT_BUNDLE } from "./agent-package.ts";
import { ROOT } from "./build.ts";

const run = promisify(execFile);
const PLATFORMS = ["linux-x64", "linux-arm64", "darwin-arm64", "darwin-x64", "win-x64"];
/** Marks the place in a `node` program that says whether it contains a bundle. */
const SENTINEL = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";

interface ExecutableOptions {
  platform: string;
  /** The `node` program of that platform, of the same version as the one that runs this script. */
  node: string;
  out: string;
}

export async function buildExecutable({ platform, node, out }: ExecutableOptions): Promise<void> {
  const dir = await mkdtemp(join(tmpdir(), "underpass-executable-"));
  try {
    const blob = join(dir, "agent.blob");
    await writeBlob(dir, blob, platform === getPlatform());
    await mkdir(dirname(out), { recursive: true });
    await copyFile(node, out);
    await chmod(out, 0o755);
    const isMac = platform.startsWith("darwin");
    if (isMac && process.platform === "darwin") await run("codesign", ["--remove-signature", out]);
    const machO = isMac ? ["--macho-segment-name", "NODE_SEA"] : [];
    const injection = [out, "NODE_SEA_BLOB", blob, "--sentinel-fuse", SENTINEL, ...machO];
    await run(process.execPath, [join(ROOT, "node_modules/postject/dist/cli.js"), ...injection]);
    // macOS does not start a program whose signature is missing or does not match.
    if (isMac && process.platform === "darwin") await run("codesign", ["--sign", "-", out]);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** @param isNative whether this Node.js compiles for the platform, so that the blob may contain compiled code. */
async function writeBlob(dir: string, output: string, isNative: boolean): Promise<void> {
  const main = join(dir, "agent.cjs");
  // The main script of an executable is one CommonJS file, so its dynamic imports are part of it.
  await esbuild.build({
    ...AGENT_BUNDLE,
    entryPoints: ["agent/bin/underpass.ts"],
    outfile: main,
    format: "cjs",
    supported: { "dynamic-import": false },
  });
  const settings = join(dir, "sea.json");
  const useCodeCache = isNative;
  await writeFile(
    settings,
    JSON.stringify({ main, output, useCodeCache, disableExperimentalSEAWarning: true }),
  );
  await run(process.execPath, ["--experimental-sea-config", settings]);
}

/** As npm and Node.js name their downloads: `linux-x64`, `win-x64`. */
export function getPlatform(): string {
  return `${process.platform === "win32" ? "win" : process.platform}-${process.arch}`;
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: {
      platform: { type: "string", default: getPlatform() },
      node: { type: "string", default: process.execPath },
      out: { type: "string" },
    },
  });
  const { platform, node } = values;
  const extension = platform.startsWith("win") ? ".exe" : "";
  const out = values.out ?? join(ROOT, `agent/executables/underpass-${platform}${extension}`);
  if (!PLATFORMS.includes(platform))
    throw new Error(`--platform must be one of ${PLATFORMS.join(", ")}`);
  if (platform !== getPlatform() && node === process.execPath) {
    throw new Error(`--platform ${platform} needs --node with the node program of that platform`);
  }
  await buildExecutable({ platform, node, out });
  console.log(out);
}
