/** Reads Linux's information about the TCP connections of a process and of its network namespace. */
import { readdir, readFile } from "node:fs/promises";

export interface ProcessUse {
  descriptors: number;
  residentMiB: number;
}

const PAGE_BYTES = 4_096;
/** `TCP_NEW_SYN_RECV` is shown as `TCP_SYN_RECV`. */
const SYN_RECEIVED = "03";

export async function readProcessUse(pid: number): Promise<ProcessUse> {
  const descriptors = await readdir(`/proc/${pid}/fd`);
  const [, residentPages] = (await readFile(`/proc/${pid}/statm`, "latin1")).split(" ");
  return {
    descriptors: descriptors.length,
    residentMiB: (Number(residentPages) * PAGE_BYTES) / 1024 ** 2,
  };
}

/** @returns the number of half-open connections to the port, without those that use SYN cookies. */
export async function countHalfOpen(pid: number, port: number): Promise<number> {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, "0")}`;
  const lines = (await readFile(`/proc/${pid}/net/tcp`, "latin1")).split("\n");
  return lines.filter((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    return state === SYN_RECEIVED && local.endsWith(suffix);
  }).length;
}

/** @returns a counter of `TcpExt`, as `nstat` names them without that prefix. */
export async function readTcpCounter(pid: number, name: string): Promise<number> {
  const lines = (await readFile(`/proc/${pid}/net/netstat`, "latin1")).split("\n");
  const [names = [], values = []] = lines
    .filter((line) => line.startsWith("TcpExt:"))
    .map((line) => line.split(" "));
  return Number(values[names.indexOf(name)]);
}
