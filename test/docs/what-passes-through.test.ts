/** docs/what-passes-through.md names an existing test in every row. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../../self-host/build/build.ts";

const text = await readFile(join(ROOT, "docs/what-passes-through.md"), "utf8");
const promises = text
  .split("\n")
  .map((line) => /\| `([a-z0-9/-]+)` › (.+?) *\|$/.exec(line))
  .filter((match) => match !== null)
  .map(([, file = "", name = ""]) => [file, name] as const);

test("every row of its tables names a test", () => {
  const rows = text
    .split("\n")
    .filter((line) => line.startsWith("| ") && !/^\| (feature|event|-)/.test(line));
  expect(promises).toHaveLength(rows.length);
});

test.each(promises)("%s › %s", async (file, name) => {
  const paths = [`${file}.test.ts`, `${file}.workerd.test.ts`];
  const sources = await Promise.all(
    paths.map((path) => readFile(join(ROOT, "test", path), "utf8").catch(() => "")),
  );
  expect(sources.join("")).toContain(`"${name}"`);
});
