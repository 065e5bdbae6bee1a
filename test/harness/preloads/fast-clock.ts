/**
 * Programs in processes of their own whose clock a test can speed up, so that no test waits for their real intervals:
 * seconds between heartbeats, minutes between retries.
 */
import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const PRELOAD = pathToFileURL(join(import.meta.dirname, "fast-clock-preload.ts")).href;

/** The program, or its process id. */
type Program = Pick<ChildProcess, "pid"> | number;

/** The environment of a Node.js program whose clock can run `speed` times as fast. */
export function fastClock(speed: number): Record<string, string> {
  return { NODE_OPTIONS: `--import=${PRELOAD}`, CLOCK_SPEED: String(speed) };
}

/**
 * The environment of a Node.js program whose timers run `speed` times as fast. Its dates are right, so that it agrees with
 * other programs about when tickets expire and whether a connection is silent.
 */
export function fastTimers(speed: number): Record<string, string> {
  return { ...fastClock(speed), CLOCK_TIMERS_ONLY: "1" };
}

/** From now on the program's clock is fast. It must have printed something: a starting program ends by this signal. */
export function speedUp(program: Program): void {
  const pid = typeof program === "number" ? program : program.pid;
  if (pid === undefined) throw new Error("the program has not started");
  process.kill(pid, "SIGUSR2");
}
