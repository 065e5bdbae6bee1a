/** Every text of the dashboard's pages, collected from its source. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";
import { findPhraseProblem } from "../../harness/formats/messages.ts";
import { collectTexts, findTextProblems } from "../../harness/formats/source-messages.ts";

const list = execFileSync("git", ["ls-files", "dashboard/*.ts", "dashboard/*.tsx"], {
  cwd: ROOT,
  encoding: "utf8",
});
const texts = collectTexts(
  list
    .trim()
    .split("\n")
    .map((path) => join(ROOT, path)),
);

test("no text has an unclear phrase, or is a library's", () => {
  expect(texts.length).toBeGreaterThan(1_000);
  expect(findTextProblems(texts, findPhraseProblem)).toEqual([]);
});
