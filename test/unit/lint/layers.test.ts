/** Lint enforces the table of layers in ARCHITECTURE.md. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { ESLint, Linter } from "eslint";
import ts from "typescript";
import tseslint from "typescript-eslint";
import { describe, expect, test } from "vitest";
import { importLayers } from "../../../lint/import-layers.js";
import { findLayer, LAYERS, mayImport } from "../../../lint/layers.js";
import { ROOT } from "../../../self-host/build/build.ts";

const layers = Object.keys(LAYERS);
const sources = execFileSync("git", ["ls-files", "*.ts", "*.js"], { cwd: ROOT, encoding: "utf8" })
  .trim()
  .split("\n")
  .filter((path) => path.includes("/"));

const linter = new Linter({ cwd: ROOT });

/** Lints a text as a file of the layer. @returns the messages. */
function lint(layer: string, text: string): string[] {
  const path = layer.endsWith(".ts") ? layer : `${layer}/planted.ts`;
  return linter
    .verify(
      text,
      {
        files: ["**/*.ts"],
        languageOptions: { parser: tseslint.parser },
        plugins: { layers: { rules: { imports: importLayers } } },
        rules: { "layers/imports": "error" },
      } as Linter.Config,
      { filename: join(ROOT, path) },
    )
    .map(({ message }) => message);
}

function pathTo(from: string, to: string): string {
  const depth = from.endsWith(".ts") ? from.split("/").length - 1 : from.split("/").length;
  return `${"../".repeat(depth)}${to.endsWith(".ts") ? to : `${to}/planted.ts`}`;
}

describe.each(layers)("%s", (layer) => {
  const others = layers.filter((other) => other !== layer);

  test("may import what its row lists, and nothing else", () => {
    for (const other of others) {
      const path = pathTo(layer, other);
      const planted = [
        `import { a } from "${path}";`,
        `import type { A } from "${path}";`,
        `export { a } from "${path}";`,
        `export * from "${path}";`,
        `const a = await import("${path}");`,
        `let a: import("${path}").A;`,
      ];
      const expected = mayImport(layer, other) ? 0 : 1;
      for (const line of planted) expect(lint(layer, line), line).toHaveLength(expected);
    }
  });

  test("has the rule switched on in every one of its files", async () => {
    const eslint = new ESLint({ cwd: ROOT });
    const file = sources.find((path) => findLayer(path) === layer);
    if (file === undefined) return;
    const config = (await eslint.calculateConfigForFile(join(ROOT, file))) as Linter.Config;
    expect(config.rules?.["layers/imports"]).toEqual([2]);
  });
});

test("a folder without a row is refused", () => {
  expect(lint("helpers", "export const a = 1;")[0]).toContain("belongs to no layer");
});

test("every source file belongs to a layer", () => {
  expect(sources.filter((path) => findLayer(path) === undefined)).toEqual([]);
});

test("ARCHITECTURE.md has the same table", async () => {
  const text = await readFile(join(ROOT, "ARCHITECTURE.md"), "utf8");
  const rows = [...text.matchAll(/^\| `([^`]+)` +\|[^|]*\| ([^|]*?) *\|$/gm)].map(
    ([, layer = "", imports = ""]) => [
      layer.replace(/\/$/, ""),
      imports === "everything"
        ? ["*"]
        : [...imports.matchAll(/`([^`]+?)\/?`/g)].map(([, name]) => name),
    ],
  );
  expect(Object.fromEntries(rows)).toEqual(LAYERS);
});

/** @returns the repository's own files that a file imports, types and dynamic imports too. */
function findImports(path: string): string[] {
  const { importedFiles } = ts.preProcessFile(readFileSync(join(ROOT, path), "utf8"), true, true);
  return importedFiles
    .map(({ fileName }) => fileName)
    .filter((name) => name.startsWith("."))
    .map((name) => normalize(join(dirname(path), name)));
}

/** @returns the first circle that a depth-first search finds. */
function findCircle(imports: ReadonlyMap<string, string[]>): string[] | undefined {
  const finished = new Set<string>();
  const walk = (path: string, trail: string[]): string[] | undefined => {
    if (finished.has(path)) return undefined;
    const at = trail.indexOf(path);
    if (at >= 0) return [...trail.slice(at), path];
    for (const next of imports.get(path) ?? []) {
      const circle = walk(next, [...trail, path]);
      if (circle) return circle;
    }
    finished.add(path);
    return undefined;
  };
  for (const path of imports.keys()) {
    const circle = walk(path, []);
    if (circle) return circle;
  }
  return undefined;
}

test("there are no circular imports, not even of types", () => {
  expect(
    findCircle(
      new Map([
        ["a", ["b"]],
        ["b", ["c"]],
        ["c", ["b"]],
      ]),
    ),
  ).toEqual(["b", "c", "b"]);
  expect(findCircle(new Map(sources.map((path) => [path, findImports(path)])))).toBeUndefined();
});

test("no folder has more than sixteen source files of its own", () => {
  const counts = new Map<string, number>();
  for (const path of sources) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  expect([...counts].filter(([, count]) => count > 16)).toEqual([]);
});
