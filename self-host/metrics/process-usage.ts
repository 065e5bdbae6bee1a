/**
 * What the processes of a server use, as Linux reports it in `/proc` (proc(5)). On other systems only the numbers of this
 * process are known.
 */
import { readdir, readFile } from "node:fs/promises";
import type { MetricFamily, MetricSample } from "../../shared/metrics/exposition.ts";

/** USER_HZ, which is 100 on every architecture that Node.js supports. */
const TICKS_PER_SECOND = 100;
const KIB = 1024;
/** PostgreSQL has a process for each of its connections, whose number is limited. */
const CHILDREN_MAX = 200;

export interface ProcessUsage {
  residentBytes: number;
  cpuSeconds: number;
  /** undefined where the system does not report it. */
  openDescriptors?: number;
  /** undefined: no limit, or not reported. */
  maxDescriptors?: number | undefined;
}

interface ProcessReading extends ProcessUsage {
  openDescriptors: number;
  /** Resident memory that no other process shares. */
  anonymousBytes: number;
}

/** This process, without those that it has started. */
export async function readOwnUsage(): Promise<ProcessUsage> {
  const { user, system } = process.cpuUsage();
  const portable = {
    residentBytes: process.memoryUsage.rss(),
    cpuSeconds: (user + system) / 1e6,
  };
  return (await readProcess(process.pid)) ?? portable;
}

/**
 * A process and those that it has started: their memory, with shared memory counted once, their CPU time, and the
 * descriptors of the one that has the most open.
 *
 * @returns undefined when it does not run.
 */
export async function readUsageWithChildren(pid: number): Promise<ProcessUsage | undefined> {
  const usage = await readProcess(pid);
  if (!usage) return undefined;
  for (const child of await Promise.all((await listChildren(pid)).map(readProcess))) {
    if (!child) continue;
    usage.residentBytes += child.anonymousBytes;
    usage.cpuSeconds += child.cpuSeconds;
    usage.openDescriptors = Math.max(usage.openDescriptors, child.openDescriptors);
  }
  return usage;
}

async function readProcess(pid: number): Promise<ProcessReading | undefined> {
  const read = (file: string) => readFile(`/proc/${pid}/${file}`, "utf8");
  try {
    const [status, stat, limits, descriptors] = await Promise.all([
      read("status"),
      read("stat"),
      read("limits"),
      readdir(`/proc/${pid}/fd`),
    ]);
    const size = (field: string) =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1] ?? 0);
    // The name, in parentheses, may contain spaces and parentheses. utime and stime are fields 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const limit = /^Max open files\s+(\d+)/m.exec(limits)?.[1];
    return {
      residentBytes: size("VmRSS") * KIB,
      anonymousBytes: size("RssAnon") * KIB,
      cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
      openDescriptors: descriptors.length,
      maxDescriptors: limit === undefined ? undefined : Number(limit),
    };
  } catch {
    // It has exited, belongs to another user, or this is not Linux.
    return undefined;
  }
}

async function listChildren(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  return text.trim().split(" ").filter(Boolean).slice(0, CHILDREN_MAX).map(Number);
}

/** @param processes by the value of the label `process`; undefined for one that does not run. */
export function toUsageFamilies(
  processes: readonly [name: string, usage: ProcessUsage | undefined][],
): MetricFamily[] {
  const each = (field: keyof ProcessUsage): MetricSample[] =>
    processes.flatMap(([process, usage]) =>
      usage?.[field] === undefined ? [] : [{ labels: { process }, value: usage[field] }],
    );
  return [
    {
      name: "underpass_server_process_resident_memory_bytes",
      help: "Resident memory of a process of the server; of PostgreSQL with the processes of its connections.",
      type: "gauge",
      samples: each("residentBytes"),
    },
    {
      name: "underpass_server_process_cpu_seconds_total",
      help: "CPU time of a process of the server.",
      type: "counter",
      samples: each("cpuSeconds"),
    },
    {
      name: "underpass_server_process_open_descriptors",
      help: "Open files and sockets of a process of the server.",
      type: "gauge",
      samples: each("openDescriptors"),
    },
    {
      name: "underpass_server_process_descriptors_limit",
      help: "How many files and sockets the process may have open (ulimit -n).",
      type: "gauge",
      samples: each("maxDescriptors"),
    },
  ];
}
