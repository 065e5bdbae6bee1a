/** Every line that the server and the relay log, and every reason for which a server does not start, from the source. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ROOT } from "../../../self-host/build/build.ts";
import { findPhraseProblem } from "../../harness/formats/messages.ts";
import { collectMessages, findTextProblems } from "../../harness/formats/source-messages.ts";

const list = execFileSync("git", ["ls-files", "self-host/*.ts", "relay/*.ts"], {
  cwd: ROOT,
  encoding: "utf8",
});
const files = list
  .trim()
  .split("\n")
  .map((path) => join(ROOT, path));
const messages = collectMessages(files, { info: [0], warn: [0], error: [0], StartError: [0] });
const reasons = messages.filter(({ callee }) => callee === "StartError");

/** A message follows a time, a level or the name of a program. */
function findFragmentProblem(text: string): string | null {
  if (/\n/.test(text)) return "has several lines";
  if (/^[A-Z][a-z]+ /.test(text) && !text.startsWith("PostgreSQL"))
    return "starts with a capital letter";
  return text.endsWith(".")
    ? "ends with a period"
    : findPhraseProblem(text.replaceAll("'nobody'", ""));
}

test("log lines and reasons are fragments without an unclear phrase or a library's words", () => {
  expect(messages.length).toBeGreaterThan(70);
  expect(findTextProblems(messages, findFragmentProblem)).toEqual([]);
});

test("a reason for which a server does not start says what to do, or names the setting", () => {
  expect(reasons.length).toBeGreaterThan(40);
  const isAdvice = /[:;] \S+ .*\S|: …|^[A-Z_]+(?:, [A-Z_]+)*: |^…: |must be/;
  expect(
    findTextProblems(reasons, (text) => (isAdvice.test(text) ? null : "has no advice")),
  ).toEqual([]);
});
