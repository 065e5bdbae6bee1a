/**
 * A process that the server depends on: started until it is ready, restarted when it dies, stopped when
 * it should. It leads a process group of its own, so that a Ctrl-C at the terminal reaches the server
 * alone, which then stops everything in order.
 */
import { type ChildProcess, spawn, type SpawnOptions } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { CHILD_RESTART_MAX_MS, CHILD_RESTART_MIN_MS } from "../limits.ts";
import { getErrorMessage } from "../errors.ts";
import type { Log } from "../log.ts";

/** How long a part of the server gets to come up, crash recovery of the database included. */
const CHILD_READY_MAX_MS = 60_000;
/** A child that ran for this long starts again with the shortest wait. */
const CHILD_STABLE_MS = 30_000;

export interface ChildOptions {
  name: string;
  command: string;
  args: string[];
  options: Pick<SpawnOptions, "cwd" | "env" | "uid" | "gid">;
  /** Open here, and in the child as its fourth descriptor, number 3. */
  descriptor?: number;
  /** Asks the child itself; rejects while it isn't ready yet. Called again and again. */
  probe(): Promise<void>;
  /** Called before each new process. */
  prepare?(): Promise<void>;
  /** Called with each new process, before it is ready. */
  onSpawn?(pid: number): Promise<void>;
  /** Decides what is logged of a line that the child wrote. */
  onLine(line: string, stream: "stdout" | "stderr"): void;
  stopSignal: NodeJS.Signals;
  stopMaxMs: number;
  /** Sent when this process ends without having stopped it. */
  lastSignal: NodeJS.Signals;
}

const running = new Map<ChildProcess, NodeJS.Signals>();
process.on("exit", () => {
  for (const [child, signal] of running) child.kill(signal);
});

export class Child {
  readonly #plan: ChildOptions;
  readonly #log: Log;
  #process: ChildProcess | undefined;
  #stopping = false;
  #waitMs = CHILD_RESTART_MIN_MS;

  constructor(plan: ChildOptions, log: Log) {
    this.#plan = plan;
    this.#log = log;
  }

  /** Resolves when it is ready. Rejects, with nothing left running, when it dies or takes too long. */
  async start(): Promise<void> {
    const child = await this.#spawn();
    try {
      await this.#untilReady(child);
    } catch (error) {
      await this.stop();
      throw error;
    }
    this.#watch(child);
  }

  /** Resolves when it is gone. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const child = this.#process;
    if (!child || hasExited(child)) return;
    const exit = once(child, "exit");
    child.kill(this.#plan.stopSignal);
    const killer = setTimeout(() => child.kill("SIGKILL"), this.#plan.stopMaxMs);
    await exit;
    clearTimeout(killer);
  }

  async #spawn(): Promise<ChildProcess> {
    const plan = this.#plan;
    await plan.prepare?.();
    const child = spawn(plan.command, plan.args, {
      ...plan.options,
      detached: true,
      stdio: ["ignore", "pipe", "pipe", plan.descriptor ?? "ignore"],
    });
    this.#process = child;
    await Promise.race([
      once(child, "spawn"),
      once(child, "error").then(([error]) => {
        throw error;
      }),
    ]);
    child.on("error", (error) => {
      this.#log.error(`${plan.name}: ${getErrorMessage(error)}`);
    });
    running.set(child, plan.lastSignal);
    child.once("exit", () => running.delete(child));
    if (child.pid !== undefined) await plan.onSpawn?.(child.pid);
    for (const stream of ["stdout", "stderr"] as const) {
      const input = child[stream];
      if (input) createInterface({ input }).on("line", (line) => plan.onLine(line, stream));
    }
    return child;
  }

  async #untilReady(child: ChildProcess): Promise<void> {
    const deadline = Date.now() + CHILD_READY_MAX_MS;
    for (;;) {
      try {
        await this.#plan.probe();
        if (hasExited(child)) throw new Error("exited");
        return;
      } catch (error) {
        if (hasExited(child))
          throw new Error(`${this.#plan.name} ${describeExit(child)}`, { cause: error });
        if (Date.now() > deadline) {
          throw new Error(`${this.#plan.name} is not ready: ${getErrorMessage(error)}`, { cause: error });
        }
      }
      await sleep(PROBE_INTERVAL_MS);
    }
  }

  #watch(child: ChildProcess): void {
    const startedAt = Date.now();
    const onExit = () => {
      if (this.#stopping) return;
      if (Date.now() - startedAt > CHILD_STABLE_MS) this.#waitMs = CHILD_RESTART_MIN_MS;
      this.#log.error(`${this.#plan.name} ${describeExit(child)} and is started again`);
      void this.#restart();
    };
    if (hasExited(child)) onExit();
    else child.once("exit", onExit);
  }

  async #restart(): Promise<void> {
    while (!this.#stopping) {
      await sleep(this.#waitMs, undefined, { ref: false });
      this.#waitMs = Math.min(this.#waitMs * 2, CHILD_RESTART_MAX_MS);
      if (this.#stopping) return;
      try {
        const child = await this.#spawn();
        await this.#untilReady(child);
        this.#log.info(`${this.#plan.name} is back`);
        this.#watch(child);
        return;
      } catch (error) {
        this.#process?.kill("SIGKILL");
        this.#log.error(getErrorMessage(error));
      }
    }
  }
}

const PROBE_INTERVAL_MS = 25;

function hasExited(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function describeExit({ exitCode, signalCode }: ChildProcess): string {
  return signalCode ? `was ended by ${signalCode}` : `ended with code ${exitCode}`;
}
