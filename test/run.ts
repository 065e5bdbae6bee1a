/**
 * `npm test`: all tests, and beside them types, lint and formatting. Its last line is the count that CI reads; each of
 * the checks counts as one.
 *
 * The tests share a few cores with dozens of servers and browsers. A file that fails is run again by itself. If it
 * fails again, it counts as failed. If it passes, it is reported as UNSTEADY, so that the cause can be fixed.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { NODE_ENVIRONMENT } from "./harness/node-environment.ts";
import { type Outcome, OUTCOMES_PATH, UNKNOWN_FILE } from "./harness/outcomes.ts";

/** Scripts of package.json. Node.js runs them without npm, whose start takes a second of CPU time. */
const CHECKS = [
  ["types", "types"],
  ["lint and formatting", "lint"],
] as const;
const VITEST = "node_modules/vitest/vitest.mjs";
/** When more files fail, the cause is not the load, and none is retried. */
const RETRY_MAX_FILES = 8;

interface CheckResult {
  name: string;
  passed: boolean;
  output: string;
}

/** Holds back the output, which would be lost among that of the tests. */
async function check([name, script]: (typeof CHECKS)[number]): Promise<CheckResult> {
  const child = spawn(process.execPath, ["--run", script], { stdio: ["ignore", "pipe", "pipe"] });
  const exit = once(child, "close").catch(() => [1]);
  const [out, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
  return { name, passed: code === 0, output: out + errors };
}

function runNode(args: readonly string[], env: NodeJS.ProcessEnv): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, args, { env, stdio: ["ignore", "inherit", "inherit"] });
    child.on("error", () => resolve(false));
    child.on("exit", (code) => resolve(code === 0));
  });
}

/** Returns the outcome of each file, and one for the runner if it failed for another reason than a failed test. */
async function runTests(args: string[]): Promise<Outcome[]> {
  const directory = mkdtempSync(join(tmpdir(), "underpass-test-"));
  const path = join(directory, "outcomes.json");
  const reporters = ["--reporter=default", "--reporter=./test/harness/outcomes.ts"];
  const command = [VITEST, "run", ...reporters, ...args];
  const isGreen = await runNode(command, { ...process.env, [OUTCOMES_PATH]: path });
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

process.env.NODE_COMPILE_CACHE ??= NODE_ENVIRONMENT.NODE_COMPILE_CACHE;
const checking = Promise.all(CHECKS.map(check));
const outcomes = await retryFailed(await runTests(process.argv.slice(2)));
for (const { name, passed: isGreen, output } of await checking) {
  console.log(isGreen ? `ok: ${name}` : `${output}\nFAILED: ${name}`);
  if (isGreen) passed += 1;
  else failed += 1;
}
let skipped = 0;
for (const outcome of outcomes) {
  passed += outcome.passed;
  failed += outcome.failures.length;
  skipped += outcome.skipped;
}
if (skipped > 0) console.log(`${skipped} skipped`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
