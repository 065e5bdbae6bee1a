/** Injects the faults of a plan into the system, each at its time. */
import { setTimeout as sleep } from "node:timers/promises";
import { listChildren } from "../../bench/processes.ts";
import { getErrorMessage } from "../../shared/error-message.ts";
import type { FaultEntry, History } from "../history.ts";
import type { System } from "../system.ts";
import { describeFault, type DiskName, type Fault, type PlannedFault } from "./fault-plan.ts";
import { GOOD_NETWORK } from "./fault-proxy.ts";
import type { SmallDisk } from "./small-disk.ts";

interface FaultTargets {
  system: System;
  /** Those that can be filled on this machine. */
  disks: Map<DiskName, SmallDisk>;
  history: History;
  /** Receives a line for each fault. */
  log: (line: string) => void;
}

/** Resolves when the last fault has ended, and everything that was killed has been started again. */
export async function injectFaults(targets: FaultTargets, plan: PlannedFault[]): Promise<void> {
  const startedAtMs = performance.now();
  const running: Promise<void>[] = [];
  for (const { atSeconds, fault } of plan) {
    await sleep(Math.max(0, startedAtMs + atSeconds * 1_000 - performance.now()));
    running.push(injectAndRecord(targets, fault));
  }
  await Promise.all(running);
}

async function injectAndRecord(targets: FaultTargets, fault: Fault): Promise<void> {
  const { history, log } = targets;
  const entry: FaultEntry = { type: "fault", atMs: history.now(), fault };
  const at = `${(entry.atMs / 1_000).toFixed(1).padStart(6)} s`;
  log(`${at}  ${describeFault(fault)}`);
  // Recorded before it begins, so that what it causes comes after it.
  history.add(entry);
  try {
    await inject(targets, fault);
  } catch (error) {
    const skipped = getErrorMessage(error);
    history.markSkipped(entry, skipped);
    log(`${at}  skipped: ${skipped}`);
  }
}

async function inject({ system, disks }: FaultTargets, fault: Fault): Promise<void> {
  switch (fault.kind) {
    case "kill":
      return system.kill(fault.process);
    case "pause": {
      const pid = await system.getPid(fault.process);
      if (pid === undefined) throw new Error(`the process ${fault.process} is not running`);
      return pause(pid, fault.seconds);
    }
    case "fill-disk": {
      const disk = disks.get(fault.disk);
      if (!disk) throw new Error("no small file system can be mounted here");
      disk.fill();
      await sleep(fault.seconds * 1_000);
      return disk.free();
    }
    case "set-clock":
      return system.setClock(fault.programs, fault.minutes);
    case "network":
    case "freeze":
    case "reset": {
      const proxy = system.proxies.get(fault.path);
      if (!proxy) throw new Error("this experiment has no such connections");
      if (fault.kind === "freeze") return proxy.freeze();
      if (fault.kind === "reset") return proxy.reset();
      proxy.setConditions(fault.conditions);
      await sleep(fault.seconds * 1_000);
      return proxy.setConditions(GOOD_NETWORK);
    }
  }
}

/** Pauses the process and its children: PostgreSQL has one for each connection. */
async function pause(pid: number, seconds: number): Promise<void> {
  const pids = [pid, ...listChildren(pid)];
  for (const each of pids) signal(each, "SIGSTOP");
  await sleep(seconds * 1_000);
  for (const each of pids) signal(each, "SIGCONT");
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It has ended meanwhile.
  }
}
