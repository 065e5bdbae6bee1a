/** The command that the agent's messages tell the user to type. */
import { expect, test } from "vitest";
import { findProgram } from "../../../../agent/program.ts";

test.each([
  // npm 11, npm 10, and npx with another program that starts the agent.
  [{ npm_lifecycle_event: "npx", npm_lifecycle_script: "'underpass'" }, "npx underpass"],
  [{ npm_lifecycle_event: "npx", npm_lifecycle_script: '"underpass" http 3000' }, "npx underpass"],
  [{ npm_lifecycle_event: "npx", npm_lifecycle_script: "'vitest'" }, "underpass"],
  [{ npm_lifecycle_event: "start", npm_lifecycle_script: "underpass http 3000" }, "underpass"],
  [{}, "underpass"],
])("with %j it is %s", (environment, program) => {
  expect(findProgram(environment, undefined)).toBe(program);
});

test("for an executable file it is the path by which the user has started it", () => {
  expect(findProgram({}, "./underpass-linux-x64")).toBe("./underpass-linux-x64");
});
