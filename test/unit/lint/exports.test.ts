/** Every file is used, and every export by another file. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { parseSync } from "oxc-parser";
import { expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";

function listFiles(...patterns: string[]): string[] {
  const list = execFileSync("git", ["ls-files", ...patterns], { cwd: ROOT, encoding: "utf8" });
  return list.trim().split("\n");
}
const read = (path: string) => readFileSync(join(ROOT, path), "utf8");

const texts = new Map(listFiles("*.ts", "*.tsx", "*.js").map((path) => [path, read(path)]));
/** A file that one of these names exports for the program that reads it. */
const settings = ["package.json", "agent/package.json", ".oxlintrc.json", "vitest.config.ts"]
  .map(read)
  .join("\n");
/** workerd takes classes by their names, drizzle-kit reads all tables, programs import `expose` from the
 * package, and the router of the dashboard loads the component `Page` of each page. */
const ENTRY_POINTS =
  /^dashboard\/pages\/\S*-page\.tsx|^agent\/expose\.ts|^workers\/index\.ts|^bench\/hop\/worker\.js|^workers\/store\/tables\//;
const pages = listFiles("*.html").map(read).join("\n");

/** `file name` of everything that any file imports; `file *` when it imports all of a file. */
const imported = new Set<string>();
const exported: string[] = [];
for (const [path, text] of texts) {
  const { staticImports, staticExports } = parseSync(path, text).module;
  const use = (source: string, name: string | null) =>
    imported.add(`${normalize(join(dirname(path), source))} ${name ?? "*"}`);
  for (const { moduleRequest, entries } of staticImports) {
    for (const { importName } of entries) use(moduleRequest.value, importName.name ?? null);
  }
  for (const { moduleRequest, importName, exportName } of staticExports.flatMap(
    ({ entries }) => entries,
  )) {
    if (moduleRequest) use(moduleRequest.value, importName.name);
    else if (exportName.name !== null) exported.push(`${path} ${exportName.name}`);
  }
  // Dynamic imports, and those of a type. Which names they use is not known.
  for (const [, source] of text.matchAll(/\bimport\(\s*"(\.[^"]+)"/g)) use(source!, null);
}

/** The type of an exported function's parameter is exported with it, so that callers can name it. */
function isOwnType(path: string, name: string): boolean {
  const text = texts.get(path) ?? "";
  const isType = new RegExp(`^export (?:type|interface) ${name}\\b`, "m").test(text);
  return isType && text.split(new RegExp(`\\b${name}\\b`)).length > 2;
}

test("an export is imported by another file", () => {
  const unused = exported.filter((entry) => {
    const [path = "", name = ""] = entry.split(" ");
    if (imported.has(entry) || imported.has(`${path} *`) || ENTRY_POINTS.test(path)) return false;
    return !settings.includes(path) && !isOwnType(path, name);
  });
  expect(exported.length).toBeGreaterThan(1_000);
  expect(unused).toEqual([]);
});

test("a file is imported, or named by a program, a page or a setting", () => {
  const importedFiles = new Set([...imported].map((name) => name.split(" ")[0]));
  const unused = [...texts.keys()].filter((path) => {
    if (importedFiles.has(path) || ENTRY_POINTS.test(path)) return false;
    if (/\.(?:test|config|d)\.ts$/.test(path)) return false;
    const others = [...texts].filter(([other]) => other !== path).map(([, text]) => text);
    return ![settings, pages, ...others].some((text) => text.includes(basename(path)));
  });
  expect(unused).toEqual([]);
});
