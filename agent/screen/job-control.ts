/** Whether this process may use its terminal, in a shell that runs several jobs. */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * A job in the background that changed the terminal's mode or read from it would be stopped by SIGTTOU or SIGTTIN.
 * @returns also true when the system does not report it, or the process has no terminal.
 */
export function isInForeground(): boolean {
  if (process.platform === "win32") return true;
  const [own, ofTerminal] = readProcessGroups();
  if (own === undefined || ofTerminal === undefined || !(ofTerminal > 0)) return true;
  return own === ofTerminal;
}

/** @returns this process's group, and the one that the terminal belongs to now. */
function readProcessGroups(): number[] {
  if (process.platform === "linux") {
    const stat = readFileSync("/proc/self/stat", "utf8");
    // The second field is the name in parentheses, which may contain spaces.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return [Number(fields[2]), Number(fields[5])];
  }
  const options = ["-o", "pgid=", "-o", "tpgid=", "-p", String(process.pid)];
  const { stdout } = spawnSync("ps", options, { encoding: "utf8" });
  return (stdout ?? "").trim().split(/\s+/).map(Number);
}
