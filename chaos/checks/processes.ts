/** No process is left behind, and the processes release what they opened. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { getProcessName, listChildren } from "../../bench/processes.ts";
import type { System } from "../system.ts";
import { repeatUntilPassed, toCheckResult, type CheckResult } from "./check.ts";

/**
 * Connections that may be open now and were not at the start: the pools of the gateway, and the Worker's connections to
 * it, which stay open for the next burst.
 */
const MORE_DESCRIPTORS_MAX = 40;
const RELEASE_MAX_MS = 30_000;
const EXIT_MAX_MS = 10_000;

interface ProcessCensus {
  /** The names of the processes of the server and of every agent. */
  names: string[];
  /** Open connections and pipes by process, without the files of objects. */
  descriptors: Map<string, number>;
}

/** @returns a census without names and counts on systems without /proc. */
export async function countProcesses(system: System): Promise<ProcessCensus> {
  const server = await system.getPid("server");
  if (server === undefined) throw new Error("the server does not run");
  const pids: [string, number][] = [
    ["server", server],
    ...listChildren(server).map((pid): [string, number] => [getProcessName(pid), pid]),
    ...[...system.agents].map(([name, { pid = 0 }]): [string, number] => [`agent ${name}`, pid]),
  ];
  return {
    names: pids.map(([name]) => name).sort(),
    descriptors: new Map(pids.map(([name, pid]) => [name, countSockets(pid)])),
  };
}

function countSockets(pid: number): number {
  try {
    const directory = `/proc/${pid}/fd`;
    return readdirSync(directory).filter(
      (name) => !readLink(`${directory}/${name}`).startsWith("/"),
    ).length;
  } catch {
    return 0;
  }
}

function readLink(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // It was closed meanwhile.
    return "/";
  }
}

/** @param before from the start of the experiment. */
export function checkProcesses(system: System, before: ProcessCensus): Promise<CheckResult[]> {
  return repeatUntilPassed(RELEASE_MAX_MS, async () =>
    compareProcesses(before, await countProcesses(system)),
  );
}

export function compareProcesses(before: ProcessCensus, now: ProcessCensus): CheckResult[] {
  const isSame = before.names.join() === now.names.join();
  const counts = [...now.descriptors].map(([name, count]) => {
    const base = before.descriptors.get(name) ?? 0;
    return { text: `${name} ${base} to ${count}`, isLeak: count > base + MORE_DESCRIPTORS_MAX };
  });
  return [
    toCheckResult(
      "the same processes run as at the start",
      isSame ? [] : [`${before.names.join(", ")} became ${now.names.join(", ")}`],
      `${now.names.length} processes`,
    ),
    toCheckResult(
      "descriptors are back to the base",
      counts.filter(({ isLeak }) => isLeak).map(({ text }) => text),
      counts.map(({ text }) => text).join(", "),
    ),
  ];
}

/**
 * Call it after the stop.
 *
 * @param marks every process of the experiment has one of these texts in its command, environment or directory.
 */
export function checkNoProcessLeft(marks: string[]): Promise<CheckResult[]> {
  return repeatUntilPassed(EXIT_MAX_MS, () => {
    const name = "no process is left after the stop";
    const result = toCheckResult(name, findProcesses(marks), "the processes of this machine");
    return Promise.resolve([result]);
  });
}

function findProcesses(marks: string[]): string[] {
  let pids: string[];
  try {
    pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
  return pids
    .filter((pid) => pid !== String(process.pid))
    .filter((pid) => {
      const text = ["cmdline", "environ"].map((name) => readText(`/proc/${pid}/${name}`)).join();
      const place = readLink(`/proc/${pid}/cwd`);
      return marks.some((mark) => text.includes(mark) || place.includes(mark));
    })
    .map((pid) => `${getProcessName(Number(pid))} (${pid})`);
}

function readText(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // The process has ended meanwhile.
    return "";
  }
}
