/**
 * A child process that the server depends on: started and probed until ready, restarted when it exits or hangs, stopped on
 * request. It has a process group of its own, so that a Ctrl-C at the terminal reaches only the server, which then
 * stops everything in order.
 */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

import { StartError } from "../errors.ts";
import type { Log } from "../log.ts";
import { HOUR_MS, MINUTE_MS } from "../../shared/time.ts";
import { getErrorMessage } from "../../shared/error-message.ts";
import { guardProcess, releaseProcess } from "./guard.ts";
import { watchForHang } from "./watchdog.ts";

/** How long a child may take to exit before it is killed. */
export const CHILD_STOP_MAX_MS = 10_000;
/** Delay before a restart; it doubles with each failure. */
export const CHILD_RESTART_MIN_MS = 200;
export const CHILD_RESTART_MAX_MS = 5_000;
/** How long a child may take until it is ready. */
const CHILD_READY_MAX_MS = MINUTE_MS;
/** The delay before a restart is the shortest again after a child has run for this long. */
const CHILD_STABLE_MS = 30_000;
/** A child that hangs is killed this often within an hour. If that has not helped, the operator has to look. */
export const HUNG_CHILD_KILLS_HOURLY_MAX = 3;

export interface ChildOptions {
  name: string;
  command: string;
  args: string[];
  spawnOptions: Pick<SpawnOptions, "cwd" | "env" | "uid" | "gid">;
  /** Passed to the child as descriptor 3. */
  descriptor?: number;
  /** Checks whether the child is ready; rejects while it is not, with a StartError if it never will be. Called repeatedly. */
  probe(): Promise<void>;
  /** Whether an error of `probe` is the child's own answer that it needs more time: it is then waited for however long it takes. */
  isStarting?: (error: unknown) => boolean;
  /** Ends when the process answers, or after `PING_MAX_MS`. Without it, a process that hangs goes unnoticed. */
  ping?: () => Promise<unknown>;
  /** Called before each new process. */
  prepare?(): Promise<void>;
  /** Called with the id of each new process, before it is ready. */
  onSpawn?(pid: number): Promise<void>;
  /** Called with each line that the child writes. */
  onLine(line: string, stream: "stdout" | "stderr"): void;
  stopSignal: NodeJS.Signals;
  stopMaxMs: number;
  /** Sent to the child when this process exits, or is killed, without having stopped it. */
  signalOnParentExit: NodeJS.Signals;
}

const running = new Map<ChildProcess, NodeJS.Signals>();
process.on("exit", () => {
  for (const [child, signal] of running) child.kill(signal);
});

/** @param signal sent to the child when this process exits or is killed before it. */
export function endWithThisProcess(child: ChildProcess, signal: NodeJS.Signals): void {
  const { pid } = child;
  running.set(child, signal);
  if (pid !== undefined) guardProcess(pid, signal);
  child.once("exit", () => {
    running.delete(child);
    if (pid !== undefined) releaseProcess(pid);
  });
}

export class SupervisedProcess {
  readonly #options: ChildOptions;
  readonly #log: Log;
  #process: ChildProcess | undefined;
  #isStopping = false;
  #restarts = 0;
  #hangs = 0;
  /** When it was killed because it hung, within the last hour. */
  #killedAtMs: number[] = [];
  #restartDelayMs = CHILD_RESTART_MIN_MS;

  constructor(options: ChildOptions, log: Log) {
    this.#options = options;
    this.#log = log;
  }

  /** undefined while it does not run. */
  get pid(): number | undefined {
    const child = this.#process;
    return child && !hasExited(child) ? child.pid : undefined;
  }

  /** How many times it has exited without having been stopped. */
  get restarts(): number {
    return this.#restarts;
  }

  /** How many times it has not answered for a minute; undefined when nothing asks it. */
  get hangs(): number | undefined {
    return this.#options.ping && this.#hangs;
  }

  /** Resolves when the child is ready. If it exits, is stopped or is not ready in time, stops it and rejects. */
  async start(): Promise<void> {
    const child = await this.#spawn();
    try {
      await this.#waitUntilReady(child);
    } catch (error) {
      await this.stop();
      throw error;
    }
    this.#watch(child);
  }

  /** Resolves when the child has exited. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const child = this.#process;
    if (!child || hasExited(child)) return;
    const exit = once(child, "exit");
    child.kill(this.#options.stopSignal);
    const killer = setTimeout(() => child.kill("SIGKILL"), this.#options.stopMaxMs);
    await exit;
    clearTimeout(killer);
  }

  async #spawn(): Promise<ChildProcess> {
    const options = this.#options;
    await options.prepare?.();
    if (this.#isStopping) throw new Error(`${options.name} was stopped before it was started`);
    const child = spawn(options.command, options.args, {
      ...options.spawnOptions,
      detached: true,
      stdio: ["ignore", "pipe", "pipe", options.descriptor ?? "ignore"],
    });
    this.#process = child;
    await once(child, "spawn");
    child.on("error", (error) => {
      this.#log.error(`${options.name} could not be sent a signal: ${getErrorMessage(error)}`);
    });
    endWithThisProcess(child, options.signalOnParentExit);
    const { pid } = child;
    if (pid !== undefined) await options.onSpawn?.(pid);
    for (const stream of ["stdout", "stderr"] as const) {
      const input = child[stream];
      if (input) createInterface({ input }).on("line", (line) => options.onLine(line, stream));
    }
    return child;
  }

  async #waitUntilReady(child: ChildProcess): Promise<void> {
    const deadline = performance.now() + CHILD_READY_MAX_MS;
    for (;;) {
      try {
        await this.#options.probe();
        if (hasExited(child)) throw new Error("exited");
        return;
      } catch (error) {
        if (error instanceof StartError) throw error;
        if (hasExited(child))
          throw new Error(`${this.#options.name} ${describeExit(child)} before it was ready`, {
            cause: error,
          });
        if (performance.now() > deadline && !this.#options.isStarting?.(error)) {
          throw new Error(
            `${this.#options.name} was not ready after ${CHILD_READY_MAX_MS / 1_000} s: ${getErrorMessage(error)}`,
            { cause: error },
          );
        }
      }
      await sleep(PROBE_INTERVAL_MS);
    }
  }

  #watch(child: ChildProcess): void {
    const startedAt = performance.now();
    const { pid } = child;
    const { ping } = this.#options;
    let hasHung = false;
    const onHang = (state: string | undefined) => {
      hasHung = true;
      this.#handleHang(child, state);
    };
    const unwatch = pid !== undefined && ping && watchForHang({ pid, ping, onHang });
    const onExit = () => {
      if (unwatch) unwatch();
      if (this.#isStopping) return;
      this.#restarts += 1;
      if (performance.now() - startedAt > CHILD_STABLE_MS)
        this.#restartDelayMs = CHILD_RESTART_MIN_MS;
      const hint = child.signalCode === "SIGKILL" && !hasHung ? KILLED_BY_SYSTEM : "";
      this.#log.error(`${this.#options.name} ${describeExit(child)}${hint} and will be restarted`);
      void this.#restart();
    };
    if (hasExited(child)) onExit();
    else child.once("exit", onExit);
  }

  #handleHang(child: ChildProcess, state: string | undefined): void {
    if (this.#isStopping) return;
    this.#hangs += 1;
    const { name } = this.#options;
    const nowMs = performance.now();
    this.#killedAtMs = this.#killedAtMs.filter((atMs) => nowMs - atMs < HOUR_MS);
    const canKill = this.#killedAtMs.length < HUNG_CHILD_KILLS_HOURLY_MAX;
    const consequence = canKill
      ? "it is killed"
      : `it is not killed, because that has not helped ${HUNG_CHILD_KILLS_HOURLY_MAX} times within an hour`;
    this.#log.error(`${name} hangs: it has not answered for a minute; ${consequence}`, { state });
    if (!canKill) return;
    this.#killedAtMs.push(nowMs);
    child.kill("SIGKILL");
  }

  async #restart(): Promise<void> {
    while (!this.#isStopping) {
      await sleep(this.#restartDelayMs, undefined, { ref: false });
      this.#restartDelayMs = Math.min(this.#restartDelayMs * 2, CHILD_RESTART_MAX_MS);
      if (this.#isStopping) return;
      try {
        const child = await this.#spawn();
        await this.#waitUntilReady(child);
        this.#log.info(`${this.#options.name} was restarted`);
        this.#watch(child);
        return;
      } catch (error) {
        this.#process?.kill("SIGKILL");
        if (this.#isStopping) return;
        this.#log.error(
          `the restart of ${this.#options.name} failed: ${getErrorMessage(error)}; the next attempt is in ` +
            `${this.#restartDelayMs} ms`,
        );
      }
    }
  }
}

const PROBE_INTERVAL_MS = 25;
/** For an operator who has killed nothing. */
const KILLED_BY_SYSTEM = ", as the system does when memory runs out,";

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function describeExit({ exitCode, signalCode }: ChildProcess): string {
  return signalCode ? `was ended by ${signalCode}` : `ended with code ${exitCode}`;
}
