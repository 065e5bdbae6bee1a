/** Every sentence that the agent prints, collected from its source. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseSync, Visitor } from "oxc-parser";
import { expect, test } from "vitest";
import { ROOT } from "../../../../self-host/build/build.ts";
import { findPhraseProblem } from "../../../harness/formats/messages.ts";
import {
  collectMessages,
  collectTexts,
  findTextProblems,
  type SourceMessage,
} from "../../../harness/formats/source-messages.ts";

const list = execFileSync("git", ["ls-files", "agent/*.ts"], { cwd: ROOT, encoding: "utf8" });
const files = list
  .trim()
  .split("\n")
  .map((path) => join(ROOT, path));

const messages = collectMessages(files, {
  UsageError: [0],
  SettingsError: [0],
  InputError: [0],
  ToolError: [0],
  RetryableError: [0],
  fail: [0],
  RejectionError: [1],
  getOnlyArgument: [1],
  rejectEmpty: [1],
  problem: [1, 2],
  warning: [1, 2],
});
/** The only sign of a library that a handshake took too long, with which its errors are compared. */
const COMPARED_TEXT = "Opening handshake has timed out";
const texts = collectTexts(files).filter(({ text }) => text !== COMPARED_TEXT);

const isDoctors = ({ callee }: SourceMessage) => callee === "problem" || callee === "warning";

/** A command that ends a message is to be copied, so that no period follows: `run: ${PROGRAM} login`. */
const COMMAND =
  /(?:: |`)(?:…|underpass|npm|loginctl|systemctl|wg|wg-quick|sudo|ulimit|chmod|sysctl) /;

/** These follow `underpass: `, or a time or a name. */
function findFragmentProblem(text: string): string | null {
  if (/\n/.test(text)) return "has several lines";
  if (!/^(?:[a-z0-9`$"'(…]|--|\/|GET )/.test(text)) return "starts with a capital letter";
  return text.endsWith(".") && !text.startsWith("…") ? "ends with a period" : null;
}

/** Advice, and what is printed on a line of its own. */
function findSentenceProblem(text: string): string | null {
  if (!/^[A-Z…`]/.test(text)) return "does not start with a capital letter";
  return /[.:?…]$/.test(text) || COMMAND.test(text) ? null : "does not end with a period";
}

test("errors are fragments, which follow the name of the program", () => {
  const errors = messages.filter((message) => !isDoctors(message) && message.text !== "");
  expect(errors.length).toBeGreaterThan(100);
  expect(findTextProblems(errors, findFragmentProblem)).toEqual([]);
});

test("an error that is not about the command line says what to do next", () => {
  const errors = messages.filter(({ callee }) => /^(?:Settings|Input|Tool)Error$/.test(callee));
  expect(errors.length).toBeGreaterThan(30);
  // The last part of some is the advice of `explainError`.
  const isAdvice = /; |run: |: …$/;
  const findProblem = (text: string) => (isAdvice.test(text) ? null : "has no advice");
  expect(findTextProblems(errors, findProblem)).toEqual([]);
});

test("the doctor's results are fragments, and its advice is sentences", () => {
  const results = messages.filter((message) => isDoctors(message) && message.position === 1);
  const advice = messages.filter((message) => isDoctors(message) && message.position === 2);
  expect(results.length + advice.length).toBeGreaterThan(60);
  expect(findTextProblems(results, findFragmentProblem)).toEqual([]);
  expect(findTextProblems(advice, findSentenceProblem)).toEqual([]);
});

test("a text has a capital letter and a period, or neither", () => {
  const plain = texts.filter(({ text }) => !/^[<#]|\n./.test(text));
  expect(plain.length).toBeGreaterThan(500);
  const problems = findTextProblems(plain, (text) => {
    const isSentence = /^[A-Z][a-z']* (?:\S+ ){3,}/.test(text);
    if (isSentence) return findSentenceProblem(text.trimEnd());
    return /^[a-z][^.]*\.$/.test(text) ? "ends with a period" : null;
  });
  expect(problems).toEqual([]);
});

test("no text has an unclear phrase, or is a library's", () => {
  expect(findTextProblems(texts, findPhraseProblem)).toEqual([]);
});

test("no text names a file of docs/, which the package does not contain", () => {
  const findFile = (text: string) => (/\bdocs\/[a-z-]+/.test(text) ? "names a file" : null);
  expect(findTextProblems(texts, findFile)).toEqual([]);
});

/** These files may read the message of any error: it becomes one for the user there, or is only compared. */
const MESSAGE_READERS =
  /agent\/(?:error-message|origin\/(?:handler|http-stream|origin-error|websocket-stream))\.ts$/;

test("a message of an error that another program may have thrown is translated by explainError", () => {
  const places = files
    .filter((file) => !MESSAGE_READERS.test(file))
    .flatMap((file) => {
      const source = readFileSync(file, "utf8");
      const found: string[] = [];
      new Visitor({
        MemberExpression: ({ object, property, start }) => {
          const isMessage = property.type === "Identifier" && property.name === "message";
          if (!isMessage || object.type !== "Identifier" || object.name !== "error") return;
          found.push(`${file}:${source.slice(0, start).split("\n").length}`);
        },
      }).visit(parseSync(file, source).program);
      return found;
    });
  expect(places).toEqual([]);
});
