/** An agent that is started again when it ends, as a service manager does. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { runAgent, type RunningAgent } from "../test/harness/tunnel/agent.ts";
import type { History } from "./history.ts";

const PRELOAD = pathToFileURL(join(import.meta.dirname, "faults/clock-offset-preload.ts")).href;
const RESTART_DELAY_MS = 200;

/** The environment of a Node.js program whose wall clock `setClock` sets. */
export function buildClockEnvironment(offsetFile: string): Record<string, string> {
  return { NODE_OPTIONS: `--import=${PRELOAD}`, CLOCK_OFFSET_FILE: offsetFile };
}

/** Sets the clocks of programs that run with the environment of this file. They must have printed something. */
export async function setClock(offsetFile: string, pids: number[], minutes: number): Promise<void> {
  await writeFile(offsetFile, String(minutes * 60_000));
  for (const pid of pids) process.kill(pid, "SIGUSR2");
}

interface SupervisedAgentOptions {
  name: string;
  /** As for `runAgent`. */
  args: string[];
  token: Uint8Array;
  env: Record<string, string>;
  /** Default: the agent of this checkout. */
  command?: string[];
}

export class SupervisedAgent {
  readonly name: string;
  readonly #options: SupervisedAgentOptions;
  readonly #history: History;
  #current: RunningAgent | undefined;
  #isStopped = false;
  #running: Promise<void> | undefined;

  constructor(options: SupervisedAgentOptions, history: History) {
    this.name = options.name;
    this.#options = options;
    this.#history = history;
  }

  /** @returns the event `ready` of its first start. */
  async start(): Promise<Record<string, unknown>> {
    const first = await this.#launch();
    this.#running = this.#supervise(first);
    return first.event("ready");
  }

  get pid(): number | undefined {
    return this.#current?.child.pid;
  }

  /** Whether it has printed something, so that it handles signals. */
  get hasStarted(): boolean {
    return (this.#current?.stdout ?? "") !== "";
  }

  kill(): void {
    this.#current?.child.kill("SIGKILL");
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.kill();
    await this.#running;
  }

  async #launch(): Promise<RunningAgent> {
    const { args, token, env, command } = this.#options;
    this.#current = await runAgent(args, { token, env, ...(command && { command }) });
    return this.#current;
  }

  async #supervise(first: RunningAgent): Promise<void> {
    for (let agent = first; ; agent = await this.#launch()) {
      const code = await agent.exit;
      // A killed one has no code.
      if (code !== null && !this.#isStopped) this.#recordExit(agent, code);
      await agent[Symbol.asyncDispose]();
      if (this.#isStopped) return;
      await sleep(RESTART_DELAY_MS);
    }
  }

  #recordExit({ stdout, stderr }: RunningAgent, code: number): void {
    const detail = (stderr || stdout).trim().split("\n").at(-1) ?? "";
    this.#history.add({
      type: "exit",
      atMs: this.#history.now(),
      program: this.name,
      code,
      detail,
    });
  }
}
