/** The common parts of the commands `backup` and `restore`: their options, their output, and how they end. */
import { existsSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { StartError } from "../errors.ts";
import { createLog, type Log } from "../log.ts";
import { getErrorCode, getErrorMessage } from "../../shared/error-message.ts";

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

class UsageError extends Error {}

/** @returns the values of the options, each of which is required and takes one. @throws UsageError */
export function parseOptions<Required extends string>(
  required: readonly Required[],
  usage: string,
): Record<Required, string> {
  const options = Object.fromEntries(required.map((name) => [name, { type: "string" as const }]));
  let values: Record<string, string | boolean | undefined>;
  try {
    ({ values } = parseArgs({ options }));
  } catch (error) {
    throw new UsageError(`${getErrorMessage(error)}; usage: ${usage}`);
  }
  const missing = required.find((name) => !values[name]);
  if (missing !== undefined) throw new UsageError(`--${missing} is missing; usage: ${usage}`);
  return values as Record<Required, string>;
}

/** npm runs scripts in the directory of package.json, and names the one in which it was started. */
export function resolvePath(path: string): string {
  return resolve(process.env.INIT_CWD ?? ".", path);
}

/** PostgreSQL's messages go to standard error, so that standard output has only the command's own lines. */
export const stderrLog: Log = createLog(process.stderr);

/** Runs a command, and reports its failure in one line and by the exit code. */
export async function runCommand(name: string, run: () => Promise<void>): Promise<void> {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.once(signal, () => {
      // After the removals, which were registered earlier.
      process.once("exit", () => {
        process.stderr.write(`${name}: interrupted by ${signal}; ${describeRest()}\n`);
      });
      process.exit(EXIT_FAILED);
    });
  }
  try {
    await run();
    process.exitCode = 0;
  } catch (error) {
    process.stderr.write(`${name}: ${describeFailure(error)}\n`);
    process.exitCode = error instanceof UsageError ? EXIT_USAGE : EXIT_FAILED;
  }
}

function describeFailure(error: unknown): string {
  if (error instanceof StartError || error instanceof UsageError) return error.message;
  const message = getErrorMessage(error);
  const code = getErrorCode(error);
  if (code === "ENOSPC" || code === "EDQUOT") {
    return `${message}: free some space, or use another disk; ${describeRest()}`;
  }
  if (code === "EACCES" || code === "EPERM") {
    return `${message}: run the command as the user who owns the files`;
  }
  return `${message}; ${describeRest()}, so run the command again`;
}

const REMOVAL_MAX_MS = 10_000;
const REMOVAL_RETRY_MS = 50;
/** Directories that could not be removed. */
const leftBehind = new Set<string>();

function describeRest(): string {
  if (leftBehind.size === 0) return "nothing was left behind";
  return `remove ${[...leftBehind].join(" and ")}, which was left behind`;
}

/** Removes a directory when the process ends, even after a signal; disposing of the result removes it at once. */
export function removeAtExit(path: string): Disposable {
  const remove = () => removeDirectory(path);
  process.once("exit", remove);
  return {
    [Symbol.dispose]() {
      process.off("exit", remove);
      remove();
    },
  };
}

/** After a signal, PostgreSQL is still stopping, and writes into its directory. */
function removeDirectory(path: string): void {
  const deadline = performance.now() + REMOVAL_MAX_MS;
  for (;;) {
    // Does not throw when a file that was just created keeps the directory from being removed.
    rmSync(path, { recursive: true, force: true });
    if (!existsSync(path)) return;
    if (performance.now() > deadline) return void leftBehind.add(path);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, REMOVAL_RETRY_MS);
  }
}

/** `1.5 MiB` */
export function formatBytes(bytes: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${step === 0 ? bytes : (bytes / 1024 ** step).toFixed(1)} ${units[step]}`;
}
