/**
 * Records the agent of a release, so that tests can run it with the server of this checkout. Run it after each release with
 * the release's commit:
 *
 *     node test/e2e/agent/package/releases/record.ts <commit>
 */
import { execFileSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import * as esbuild from "esbuild";
import { AGENT_BUNDLE } from "../../../../../self-host/build/agent-package.ts";
import { ROOT } from "../../../../../self-host/build/build.ts";

const [, , commit] = process.argv;
if (!commit)
  throw new Error("the commit is missing: node test/e2e/agent/package/releases/record.ts v1.0.0");

await using checkout = await mkdtempDisposable(join(tmpdir(), "underpass-release-"));
const archive = execFileSync("git", ["archive", commit], { cwd: ROOT, maxBuffer: 2 ** 28 });
execFileSync("tar", ["-x", "-C", checkout.path], { input: archive });
symlinkSync(join(ROOT, "node_modules"), join(checkout.path, "node_modules"));
const { outputFiles } = await esbuild.build({
  ...AGENT_BUNDLE,
  format: "esm",
  absWorkingDir: checkout.path,
  entryPoints: ["agent/bin/underpass.ts"],
  write: false,
  outfile: "underpass.mjs",
});
const compressed = brotliCompressSync(outputFiles[0]!.contents, {
  params: { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY },
});
writeFileSync(join(import.meta.dirname, "underpass.mjs.br"), compressed);
console.log(`the agent of ${commit}: ${compressed.length >> 10} KiB`);
