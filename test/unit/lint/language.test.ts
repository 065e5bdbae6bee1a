/** Plain, standard English in code, comments and documents: docs/glossary.md has the vocabulary. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";

/** Phrases that leave open who does what, with a plainer way to say it. */
const PHRASES: readonly [RegExp, string][] = [
  [/\bwhoever\b|\bwhomever\b/i, "name the visitor, agent, caller or reader"],
  [/\bby then\b/i, "name the time"],
  [/\bit is over\b|\bis over by\b/i, "has ended, has expired"],
  [/\bis no more\b|\bare no more\b/i, "does not exist any more"],
  [
    /(?<![?a-z] )\bwhat (?:is|was) (?!the\b|a\b|an\b|this\b|it\b|wrong\b)/i,
    "use a noun: 'captured requests'",
  ],
  [/\bcomes? of it\b|\bcame of\b/i, "the result"],
];

/** `reasonOf(x)` does not say whether it is looked up, computed or read: `findReason`, `toReason`, `readReason`. */
const VAGUE_FUNCTION =
  /^\s*(?:export )?(?:async )?function \*?(\w+Of)\b|^\s*(?:export )?const (\w+Of) = (?:async )?\(|^\s+(?:async |static |\*)*(#?\w+Of)\([^)]*\)(?:: [^{;]+)? \{/;

/** These files list such phrases. */
const OWN_FILES = ["test/unit/lint/language.test.ts", "test/server/service/messages.test.ts"];
const files = execFileSync("git", ["ls-files", "*.ts", "*.js", "*.md", "*.html", "*.toml"], {
  cwd: ROOT,
  encoding: "utf8",
})
  .trim()
  .split("\n")
  .filter((path) => !OWN_FILES.includes(path));

function findLines(paths: string[], find: (line: string) => string | undefined): string[] {
  return paths.flatMap((path) =>
    readFileSync(join(ROOT, path), "utf8")
      .split("\n")
      .flatMap((line, at) => {
        const problem = find(line);
        return problem === undefined ? [] : [`${path}:${at + 1}: ${problem}: ${line.trim()}`];
      }),
  );
}

test.each(PHRASES)("no text says %s", (pattern, instead) => {
  expect(findLines(files, (line) => (pattern.test(line) ? instead : undefined))).toEqual([]);
});

test("a type's name is a noun", () => {
  const code = files.filter((path) => path.endsWith(".ts"));
  const find = (line: string) => /\b(?:type|interface|class) (\w+Of)\b/.exec(line)?.[1];
  expect(findLines(code, find)).toEqual([]);
});

test("a function's name says what it does", () => {
  const code = files.filter((path) => /\.(ts|js)$/.test(path));
  const find = (line: string) => {
    const [, ...names] = VAGUE_FUNCTION.exec(line) ?? [];
    return names.find((name) => name !== undefined && name !== "indexOf");
  };
  expect(findLines(code, find)).toEqual([]);
});
