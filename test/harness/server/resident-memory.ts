/** The memory that a process occupies. */
import { readFile } from "node:fs/promises";

/** On Linux only, as `VmRSS` of proc(5) has it. */
export async function readResidentMiB(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "latin1");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
}
