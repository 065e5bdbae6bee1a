/** Starts the processes of a benchmark, and reads their CPU time and memory from the kernel. */
import { fork, spawn, type ChildProcess } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestServer } from "../test/harness/server/server.ts";
import type { LoadPlan, LoadResult } from "./load.ts";

export const BENCH = dirname(fileURLToPath(import.meta.url));
export const ROOT = join(BENCH, "..");

const CLOCK_TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

/** Runs the load generator in a process of its own. */
export function runLoad(plan: LoadPlan): Promise<LoadResult> {
  return ask(fork(join(BENCH, "load.ts")), plan);
}

/** Sends a program its plan, and waits for its answer. */
export function ask<Plan extends object, Answer>(child: ChildProcess, plan: Plan): Promise<Answer> {
  child.send(plan);
  return new Promise((resolve, reject) => {
    child.once("message", (answer) => resolve(answer as Answer));
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`${child.spawnfile} exited with ${code}`)));
  });
}

/** Starts a program of this folder, which sends `{port}` when it listens. */
export async function startProgram(file: string, args: string[] = []): Promise<Program> {
  const child = fork(join(BENCH, file), args);
  const port = await new Promise<number>((resolve, reject) => {
    child.once("message", (message) => resolve((message as { port: number }).port));
    child.once("exit", () => reject(new Error(`${file} did not start`)));
  });
  return { port, pid: child.pid ?? 0, stop: () => stopChild(child) };
}

export interface Program {
  port: number;
  pid: number;
  stop(): Promise<void>;
}

export function stopChild(child: ChildProcess, signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve();
  return new Promise((resolve) => {
    child.once("exit", () => resolve());
    child.kill(signal);
  });
}

export function spawnQuiet(
  command: string,
  args: string[],
  env: NodeJS.ProcessEnv = {},
): ChildProcess {
  return spawn(command, args, {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** CPU time used so far, in milliseconds; NaN on systems without /proc. */
export function getCpuMs(pid: number): number {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ")[1]!.split(" ");
    return ((Number(fields[11]) + Number(fields[12])) * 1000) / CLOCK_TICKS_PER_SECOND;
  } catch {
    return NaN;
  }
}

/** @returns a function that returns the CPU time of each process since this call, in milliseconds. */
export function startCpuMeter(pids: readonly number[]): () => number[] {
  const before = pids.map(getCpuMs);
  return () => pids.map((pid, i) => getCpuMs(pid) - before[i]!);
}

/** Resident memory in MiB; NaN on systems without /proc. */
export function getResidentMiB(pid: number): number {
  try {
    const pages = Number(readFileSync(`/proc/${pid}/statm`, "latin1").split(" ")[1]);
    return (pages * PAGE_BYTES) / 2 ** 20;
  } catch {
    return NaN;
  }
}

/** Open files and connections; NaN on systems without /proc. */
export function countDescriptors(pid: number): number {
  try {
    return readdirSync(`/proc/${pid}/fd`).length;
  } catch {
    return NaN;
  }
}

/** Such as `workerd`, or for programs of Node.js such as `front-proxy`; empty on systems without /proc. */
export function getProcessName(pid: number): string {
  try {
    const [command = "", ...args] = readFileSync(`/proc/${pid}/cmdline`, "latin1").split("\0");
    // Options of Node.js precede the script.
    const script = args.find((arg) => arg.endsWith("/main.ts"));
    return basename(script === undefined ? command : dirname(script));
  } catch {
    return "";
  }
}

/** The ids of a process's children; none on systems without /proc. */
export function listChildren(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      readFileSync(`/proc/${pid}/task/${thread}/children`, "latin1")
        .split(" ")
        .filter(Boolean)
        .map(Number),
    );
  } catch {
    return [];
  }
}

/** Asks all children of this process to end; none on systems without /proc. */
export function stopChildren(): void {
  for (const pid of listChildren(process.pid)) {
    try {
      process.kill(pid, "SIGTERM");
    } catch {
      // It has ended meanwhile.
    }
  }
}

interface ServerProcess {
  name: string;
  pid: number;
}

/**
 * The processes of a server that work for its callers. PostgreSQL's are missing: one for each connection, they end with it,
 * and the kernel adds their time to that of their parent only then.
 */
export async function listServerProcesses(server: TestServer): Promise<ServerProcess[]> {
  const gateway = await server.getPid("server");
  const children = listChildren(gateway).map((pid) => ({ name: getProcessName(pid), pid }));
  return [
    { name: "gateway", pid: gateway },
    ...children.filter(({ name }) => ["workerd", "front-proxy"].includes(name)),
  ];
}
