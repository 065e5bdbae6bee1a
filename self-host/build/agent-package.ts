/**
 * Completes the npm package `underpass` in agent/: its bundle, the type declarations of its library, and the licenses of
 * all code in the bundle. npm runs this before `npm pack` and `npm publish`.
 */
import { execFile } from "node:child_process";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, normalize } from "node:path";
import { promisify } from "node:util";
import { AGENT_DIR, buildAgent, ROOT } from "./build.ts";

const LIBRARY = "agent/expose.d.ts";
const IMPORTED = /(?:from |import\()"([^"]+)"/g;

/**
 * Writes the declarations of the library and of the files that they import. The compiler also emits those of all other files
 * that the library uses, whose libraries the package does not install.
 * @throws Error when a declaration imports a package, which users would have to install.
 */
async function writeDeclarations(): Promise<void> {
  const emitted = await mkdtemp(join(tmpdir(), "underpass-types-"));
  try {
    await emitDeclarations(emitted);
    const target = join(AGENT_DIR, "types");
    await rm(target, { recursive: true, force: true });
    const files = new Set([LIBRARY]);
    for (const path of files) {
      const text = await readFile(join(emitted, path), "utf8");
      for (const [, imported = ""] of text.matchAll(IMPORTED)) {
        if (imported.startsWith("node:")) continue;
        if (!imported.startsWith(".")) {
          throw new Error(`the types of the package use ${imported}, which it does not install`);
        }
        files.add(normalize(join(dirname(path), imported.replace(/\.ts$/, ".d.ts"))));
      }
      await mkdir(dirname(join(target, path)), { recursive: true });
      await writeFile(join(target, path), text.replaceAll(/(["'])(\.[^"']+)\.ts\1/g, "$1$2.js$1"));
    }
  } finally {
    await rm(emitted, { recursive: true, force: true });
  }
}

async function emitDeclarations(target: string): Promise<void> {
  const settings = join(target, "tsconfig.json");
  await writeFile(
    settings,
    JSON.stringify({
      extends: join(ROOT, "tsconfig.base.json"),
      compilerOptions: {
        declaration: true,
        emitDeclarationOnly: true,
        noEmit: false,
        rootDir: ROOT,
        outDir: target,
        types: ["node"],
        typeRoots: [join(ROOT, "node_modules/@types")],
      },
      files: [join(ROOT, LIBRARY.replace(".d.ts", ".ts"))],
    }),
  );
  const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
  await promisify(execFile)(process.execPath, [compiler, "-p", settings]);
}

async function writeLicenses(sources: string[]): Promise<void> {
  const packages = new Set(
    sources.flatMap((path) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []),
  );
  const licenses = await Promise.all([...packages].sort().map(readLicense));
  const text = `The bundle contains code of these packages.\n\n${licenses.join("\n\n")}\n`;
  await writeFile(join(AGENT_DIR, "licenses.txt"), text);
  await copyFile(join(ROOT, "LICENSE"), join(ROOT, "agent/LICENSE"));
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

const { inputs } = await buildAgent();
await Promise.all([writeDeclarations(), writeLicenses(Object.keys(inputs))]);
