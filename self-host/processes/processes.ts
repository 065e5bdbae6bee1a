/** Other processes of this machine: whether one still runs, and ending those that an earlier server left. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { CHILD_STOP_MAX_MS } from "../limits.ts";

/** The command line of a process, or undefined when there is none with this id. */
export function getCommandLine(pid: number): string | undefined {
  try {
    if (process.platform === "linux") {
      // Empty for a process that has ended and is not collected yet.
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") || undefined;
    }
    return execFileSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).trim();
  } catch {
    return undefined;
  }
}

/**
 * Ends a process of an earlier server. Ids are used again by the system: the command line tells whether
 * it is still the one that was meant.
 */
export async function stopStaleProcess(
  pid: number,
  commandLineContains: string,
  signal: NodeJS.Signals,
): Promise<void> {
  const isThere = () => getCommandLine(pid)?.includes(commandLineContains) ?? false;
  if (!isThere()) return;
  process.kill(pid, signal);
  const deadline = Date.now() + CHILD_STOP_MAX_MS;
  while (isThere()) {
    if (Date.now() > deadline) process.kill(pid, "SIGKILL");
    await sleep(25);
  }
}
