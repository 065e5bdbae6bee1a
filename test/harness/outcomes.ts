/** A reporter of the test runner: leaves what became of each test file where test/run.ts reads it. */
import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { SerializedError } from "vitest";
import type { Reporter, TestModule } from "vitest/node";

export interface Outcome {
  /** From the root of the repository. */
  file: string;
  passed: number;
  /** Names of tests, and of what failed beside them: a hook, an import, an error that nobody caught. */
  failures: string[];
  skipped: number;
}

export const OUTCOMES_PATH = "UNDERPASS_TEST_OUTCOMES";
/** For an error that no file is known to have thrown. */
export const UNKNOWN_FILE = "(beside the tests)";

export default class Outcomes implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], uncaught: readonly SerializedError[]): void {
    const outcomes = new Map(modules.map((module) => [module.moduleId, toOutcome(module)]));
    for (const error of uncaught) {
      const { VITEST_TEST_PATH: path } = error as { VITEST_TEST_PATH?: string };
      const thrower = outcomes.get(path ?? UNKNOWN_FILE);
      const outcome = thrower ?? { file: UNKNOWN_FILE, passed: 0, failures: [], skipped: 0 };
      outcome.failures.push(`not caught: ${error.message}`);
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
