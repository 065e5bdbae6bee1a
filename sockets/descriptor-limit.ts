/** How many files and connections a process may have open. */
import { execFileSync } from "node:child_process";

/** Node.js has raised the limit of this process to the highest allowed one, and child processes inherit it. */
export function getDescriptorLimit(): number {
  const text = execFileSync("/bin/sh", ["-c", "ulimit -n"], { encoding: "utf8" }).trim();
  return text === "unlimited" ? Infinity : Number(text);
}
