/** Lint enforces the table of layers in ARCHITECTURE.md. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join, normalize } from "node:path";
import { parseSync, Visitor } from "oxc-parser";
import { beforeAll, describe, expect, test } from "vitest";
import { findLayer, LAYERS, mayImport } from "../../../lint/layers.js";
import { ROOT } from "../../../self-host/build/build.ts";
import { lintFiles, type Violation } from "../../harness/lint.ts";

const layers = Object.keys(LAYERS);
const sources = execFileSync("git", ["ls-files", "*.ts", "*.tsx", "*.js"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .trim()
  .split("\n")
  .filter((path) => path.includes("/"));

/** Every way to import something, with a name that is unique in the file. */
const IMPORTS = [
  (path: string, name: string) => `import { ${name}1 } from "${path}";`,
  (path: string, name: string) => `import type { ${name}2 } from "${path}";`,
  (path: string, name: string) => `export { ${name}3 } from "${path}";`,
  (path: string) => `export * from "${path}";`,
  (path: string, name: string) => `const ${name}4 = await import("${path}");`,
  (path: string, name: string) => `let ${name}5: import("${path}").A;`,
];

function toFile(layer: string): string {
  return layer.endsWith(".ts") ? layer : `${layer}/planted.ts`;
}

/** @returns a file with one line for each way to import each of the other layers. */
function plantImports(layer: string, others: string[]): string {
  const up = "../".repeat(toFile(layer).split("/").length - 1);
  return others
    .flatMap((other, i) => IMPORTS.map((write) => write(`${up}${toFile(other)}`, `a${i}_`)))
    .join("\n");
}

describe("lint", () => {
  let violations: Violation[];
  beforeAll(async () => {
    const planted = layers.map((layer) => [toFile(layer), plantImports(layer, layers)] as const);
    violations = await lintFiles("underpass(import-layers)", {
      ...Object.fromEntries(planted),
      "helpers/planted.ts": "export const a = 1;",
    });
  });

  test.each(layers)("lets %s import what its row lists, and nothing else", (layer) => {
    const refused = layers.flatMap((other, index) =>
      mayImport(layer, other) ? [] : IMPORTS.map((_, i) => index * IMPORTS.length + i + 1),
    );
    const lines = violations.filter(({ path }) => path === toFile(layer)).map(({ line }) => line);
    expect(lines.sort((a, b) => a - b)).toEqual(refused);
  });

  test("refuses a folder without a row", () => {
    const own = violations.filter(({ path }) => path.startsWith("helpers/"));
    expect(own.map(({ message }) => message)).toEqual([
      "helpers/planted.ts belongs to no layer: add its folder to lint/layers.js and ARCHITECTURE.md",
    ]);
  });
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
  const found: string[] = [];
  const add = ({ source }: { source: unknown }): void => {
    const { value } = (source ?? {}) as { value?: unknown };
    if (typeof value === "string" && value.startsWith(".")) found.push(value);
  };
  new Visitor({
    ImportDeclaration: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
    ImportExpression: add,
    TSImportType: add,
  }).visit(parseSync(path, readFileSync(join(ROOT, path), "utf8")).program);
  return found.map((name) => normalize(join(dirname(path), name)));
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
