/** Documents whose tables promise behavior: each row of a table whose last column is `test` names the test that proves it. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../../self-host/build/build.ts";

/** Defines the tests of one document, given by its path in the repository. */
export async function testNamedTests(document: string): Promise<void> {
  const rows = findRowsWithTests(await readFile(join(ROOT, document), "utf8"));

  test(`${document}: every row of the tables with tests names one`, () => {
    expect(rows.length).toBeGreaterThan(0);
    expect(rows.filter((row) => parseNamedTest(row) === null)).toEqual([]);
  });

  test.each(rows.map(parseNamedTest).filter((named) => named !== null))(
    "%s › %s",
    async (file, name) => {
      const paths = [`${file}.test.ts`, `${file}.workerd.test.ts`];
      const sources = await Promise.all(
        paths.map((path) => readFile(join(ROOT, "test", path), "utf8").catch(() => "")),
      );
      expect(sources.join("")).toContain(`"${name}"`);
    },
  );
}

function parseNamedTest(row: string): [file: string, name: string] | null {
  const [, file = "", name = ""] = /\| `([a-z0-9/-]+)` › (.+?) *\|$/.exec(row) ?? [];
  return file === "" ? null : [file, name];
}

function findRowsWithTests(text: string): string[] {
  const tables = text.split("\n\n").filter((block) => /^\|.*\| test *\|\n/.test(block));
  return tables.flatMap((table) => table.trim().split("\n").slice(2));
}
