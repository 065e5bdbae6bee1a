/** Other processes of this machine: finding one by its id, and stopping those that an earlier server left running. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { CHILD_STOP_MAX_MS } from "./child.ts";

const EXIT_CHECK_INTERVAL_MS = 25;

/** Returns the command line of a process, or undefined when no process has this id. */
export function getCommandLine(pid: number): string | undefined {
  try {
    if (process.platform === "linux") {
      // Empty for a zombie process.
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") || undefined;
    }
    return execFileSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}

/**
 * Stops a process of an earlier server. The system reuses process ids, so the command line is compared to make sure
 * that it is still the same process.
 */
export async function stopStaleProcess(
  pid: number,
  commandLineContains: string,
  signal: NodeJS.Signals,
): Promise<void> {
  const isRunning = () => getCommandLine(pid)?.includes(commandLineContains) ?? false;
  if (!isRunning()) return;
  process.kill(pid, signal);
  const deadline = performance.now() + CHILD_STOP_MAX_MS;
  while (isRunning()) {
    if (performance.now() > deadline) process.kill(pid, "SIGKILL");
    await sleep(EXIT_CHECK_INTERVAL_MS);
  }
}
