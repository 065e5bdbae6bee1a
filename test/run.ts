/**
 * `npm test`: types, lint, formatting, then every test. Its last line is the count that CI reads; each of
 * the first three counts as one test.
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const CHECKS = [
  ["types", "npm", ["run", "--silent", "types"]],
  ["lint and formatting", "npm", ["run", "--silent", "lint"]],
] as const;

function run(command: string, args: readonly string[]): Promise<boolean> {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit"] });
    child.on("error", () => resolve(false));
    child.on("exit", (code) => resolve(code === 0));
  });
}

interface Counts {
  numPassedTests: number;
  numFailedTests: number;
  numPendingTests: number;
  numTotalTests: number;
  numFailedTestSuites: number;
}

let passed = 0;
let failed = 0;
let skipped = 0;

for (const [name, command, args] of CHECKS) {
  const good = await run(command, args);
  console.log(`${good ? "ok" : "FAILED"}: ${name}`);
  if (good) passed += 1;
  else failed += 1;
}

const directory = mkdtempSync(join(tmpdir(), "underpass-test-"));
const report = join(directory, "report.json");
const vitest = [
  "vitest",
  "run",
  "--reporter=default",
  "--reporter=json",
  `--outputFile.json=${report}`,
];
const green = await run("npx", ["--no-install", ...vitest, ...process.argv.slice(2)]);
try {
  const counts = JSON.parse(readFileSync(report, "utf8")) as Counts;
  passed += counts.numPassedTests;
  failed += counts.numFailedTests;
  skipped += counts.numPendingTests;
} catch {
  console.log("FAILED: the test runner left no report");
}
// A file that could not even be loaded has no tests to count, and is a failure all the same.
if (!green && failed === 0) failed += 1;
rmSync(directory, { recursive: true, force: true });

console.log(`${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ""}`);
process.exitCode = failed > 0 ? 1 : 0;
