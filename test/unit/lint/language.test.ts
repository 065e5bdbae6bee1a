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
  [/\bis no more\b|\bare no more\b/i, "no longer exists"],
  [
    /(?<![?a-z] )\bwhat (?:is|was) (?!the\b|a\b|an\b|this\b|it\b|wrong\b)/i,
    "use a noun: 'captured requests'",
  ],
  // The user `nobody` of Linux is always quoted.
  [/\b(?:somebody|anybody)\b|(?<!["'`/])\bnobody\b/i, "name the person or the program"],
  [/\bmust be at (?:least|most) \S+ (?:characters|bytes|items)\b/, "must have at least"],
  [/\bcomes? of it\b|\bcame of\b/i, "the result"],
  [
    /\b(?:behaviours?|cancell(?:ed|ing)|labelled|coloured|colours|favours?|grey)\b/i,
    "American spelling",
  ],
];

/** Documents name what a person turns on; comments may name the factor. */
const DOCUMENT_PHRASES: readonly [RegExp, string][] = [
  [/\bsecond[- ]factors?\b/i, "two-factor authentication"],
];

/** `reasonOf(x)` does not say whether it is looked up, computed or read: `findReason`, `toReason`, `readReason`. */
const VAGUE_FUNCTION =
  /^\s*(?:export )?(?:async )?function \*?(\w+Of)\b|^\s*(?:export )?const (\w+Of) = (?:async )?\(|^\s+(?:async |static |\*)*(#?\w+Of)\([^)]*\)(?:: [^{;]+)? \{/;

/** These files list such phrases. */
const OWN_FILES = ["test/unit/lint/language.test.ts", "test/harness/formats/messages.ts"];
const files = execFileSync(
  "git",
  ["ls-files", "*.ts", "*.tsx", "*.js", "*.md", "*.html", "*.toml"],
  {
    cwd: ROOT,
    encoding: "utf8",
  },
)
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

test.each(DOCUMENT_PHRASES)("no document says %s", (pattern, instead) => {
  const documents = files.filter((path) => path.endsWith(".md") && path !== "docs/glossary.md");
  const find = (line: string) => (pattern.test(line) ? instead : undefined);
  expect(findLines(documents, find)).toEqual([]);
});

test("no comment begins with 'Of', but with its subject", () => {
  const code = files.filter((path) => /\.(tsx?|js)$/.test(path));
  const find = (line: string) => /(?:\/\*\*|\/\/) Of /.exec(line)?.[0];
  expect(findLines(code, find)).toEqual([]);
});

test("a type's name is a noun", () => {
  const code = files.filter((path) => /\.tsx?$/.test(path));
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
