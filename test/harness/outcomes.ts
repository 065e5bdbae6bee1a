/** A reporter of the test runner: writes the outcome of each test file to where test/run.ts reads it. */
import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { SerializedError } from "vitest";
import type { Reporter, TestModule } from "vitest/node";

export interface Outcome {
  /** Path from the root of the repository. */
  file: string;
  passed: number;
  /** Names of failed tests, and messages of other errors: of hooks, of imports, and uncaught ones. */
  failures: string[];
  skipped: number;
}

export const OUTCOMES_PATH = "UNDERPASS_TEST_OUTCOMES";
/** For an error whose file is unknown. */
export const UNKNOWN_FILE = "(outside the tests)";

export default class Outcomes implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], uncaught: readonly SerializedError[]): void {
    const outcomes = new Map(modules.map((module) => [module.moduleId, toOutcome(module)]));
    for (const error of uncaught) {
      const { VITEST_TEST_PATH: path } = error as { VITEST_TEST_PATH?: string };
      const thrower = outcomes.get(path ?? UNKNOWN_FILE);
      const outcome = thrower ?? { file: UNKNOWN_FILE, passed: 0, failures: [], skipped: 0 };
      outcome.failures.push(`uncaught error: ${error.message}`);
      if (!thrower) outcomes.set(UNKNOWN_FILE, outcome);
    }
    writeFileSync(process.env[OUTCOMES_PATH] ?? "", JSON.stringify([...outcomes.values()]));
  }
}

function toOutcome(module: TestModule): Outcome {
  const tests = [...module.children.allTests()];
  const inState = (state: string) => tests.filter((test) => test.result().state === state);
  const suites = [module, ...module.children.allSuites()];
  return {
    file: relative(process.cwd(), module.moduleId),
    passed: inState("passed").length,
    failures: [
      ...inState("failed").map(({ fullName }) => fullName),
      ...suites.flatMap((suite) => suite.errors()).map(({ message }) => message),
    ],
    skipped: inState("skipped").length,
  };
}
