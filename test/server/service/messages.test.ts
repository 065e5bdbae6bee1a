/**
 * Every message of an error in the source is a sentence of this service's own. The messages in responses to invalid
 * requests are tested in `fuzz.test.ts`.
 */
import { execFileSync } from "node:child_process";
import { afterAll, expect, test } from "vitest";
import {
  findFragmentProblem,
  findSentenceProblem,
  MessageCollection,
} from "../../harness/formats/messages.ts";
import { collectMessages, findTextProblems } from "../../harness/formats/source-messages.ts";

const list = execFileSync("git", ["ls-files", "workers/*.ts"], { encoding: "utf8" });
const files = list.trim().split("\n");
const seen = new MessageCollection();
afterAll(() => seen.write());

const messages = collectMessages(files, {
  ApiError: [1],
  invalidField: [1],
  ConnectionRefusedError: [1],
});

test.each([
  ["errors are sentences", "ApiError", "error", findSentenceProblem],
  ["errors of fields continue the field's name", "invalidField", "field", findFragmentProblem],
  ["refusals continue the close code", "ConnectionRefusedError", "refusal", findFragmentProblem],
] as const)("%s", (_, callee, kind, findProblem) => {
  const own = messages.filter((message) => message.callee === callee);
  expect(own.length).toBeGreaterThan(5);
  for (const { subject, text } of own) seen.add(kind, `${subject ?? "…"}: ${text}`);
  expect(findTextProblems(own, findProblem)).toEqual([]);
});
