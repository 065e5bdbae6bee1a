/**
 * `npm test`: types, lint, formatting, then all tests. Its last line is the count that CI reads; each of the checks
 * before the tests counts as one.
 *
 * The tests share a few cores with dozens of servers and browsers. A file that fails is run again by itself. If it
 * fails again, it counts as failed. If it passes, it is reported as UNSTEADY, so that the cause can be fixed.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Outcome, OUTCOMES_PATH, UNKNOWN_FILE } from "./harness/outcomes.ts";

const CHECKS = [
  ["types", "npm", ["run", "--silent", "types"]],
  ["lint and formatting", "npm", ["run", "--silent", "lint"]],
] as const;
/** When more files fail, the cause is not the load, and none is retried. */
const RETRY_MAX_FILES = 8;

function run(command: string, args: readonly string[], env = process.env): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { env, stdio: ["ignore", "inherit", "inherit"] });
    child.on("error", () => resolve(false));
    child.on("exit", (code) => resolve(code === 0));
  });
}

/** Returns the outcome of each file, and one for the runner if it failed for another reason than a failed test. */
async function runTests(args: string[]): Promise<Outcome[]> {
  const directory = mkdtempSync(join(tmpdir(), "underpass-test-"));
  const path = join(directory, "outcomes.json");
  const reporters = ["--reporter=default", "--reporter=./test/harness/outcomes.ts"];
  const command = ["--no-install", "vitest", "run", ...reporters, ...args];
  const isGreen = await run("npx", command, { ...process.env, [OUTCOMES_PATH]: path });
  const failed = {
    file: UNKNOWN_FILE,
    passed: 0,
    failures: ["the test runner failed"],
    skipped: 0,
  };
  try {
    const outcomes = JSON.parse(readFileSync(path, "utf8")) as Outcome[];
    return isGreen || outcomes.some(hasFailed) ? outcomes : [...outcomes, failed];
  } catch {
    return [failed];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function hasFailed({ failures }: Outcome): boolean {
  return failures.length > 0;
}

/** Runs failed files again. @returns the outcomes after that. */
async function retryFailed(outcomes: Outcome[]): Promise<Outcome[]> {
  const files = outcomes.filter(hasFailed).map(({ file }) => file);
  const canRetry = files.length <= RETRY_MAX_FILES && !files.includes(UNKNOWN_FILE);
  if (files.length === 0 || !canRetry) return outcomes;
  console.log(`\nRetrying alone: ${files.join(", ")}\n`);
  const second = await runTests(["--maxWorkers=1", ...files]);
  return outcomes.map((first) => {
    const again = second.find(({ file }) => file === first.file);
    if (!again) return first;
    if (hasFailed(first) && !hasFailed(again)) {
      console.log(`UNSTEADY, passed alone: ${first.file}: ${first.failures.join("; ")}`);
    }
    return again;
  });
}

let passed = 0;
let failed = 0;

// Each of them uses one core.
const checks = await Promise.all(CHECKS.map(([, command, args]) => run(command, args)));
for (const [at, [name]] of CHECKS.entries()) {
  console.log(`${checks[at] ? "ok" : "FAILED"}: ${name}`);
  if (checks[at]) passed += 1;
  else failed += 1;
}

const outcomes = await retryFailed(await runTests(process.argv.slice(2)));
let skipped = 0;
for (const outcome of outcomes) {
  passed += outcome.passed;
  failed += outcome.failures.length;
  skipped += outcome.skipped;
}
if (skipped > 0) console.log(`${skipped} skipped`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
