/** The built command `underpass` in its own process and home directory. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../../../self-host/build/build.ts";
import { createTemporaryDir } from "../directories.ts";
import { NODE_ENVIRONMENT } from "../node-environment.ts";

export const AGENT_COMMAND = [process.execPath, join(ROOT, "agent/bin/launch.js")];

export interface AgentOptions {
  /** The bytes of the agent's token, which it reads from a file. */
  token?: Uint8Array;
  env?: Record<string, string>;
  /** Precedes the command: `ip netns exec …`. */
  prefix?: string[];
  /** The command itself. Default: that of the package `underpass` in this checkout, on this version of Node.js. */
  command?: string[];
}

export interface RunningAgent extends AsyncDisposable {
  child: ChildProcess;
  readonly stdout: string;
  readonly stderr: string;
  /** Resolves with the first JSON line of this event, even if it was printed before. @param tunnel among those of `start`. */
  event(name: string, tunnel?: string): Promise<Record<string, unknown>>;
  exit: Promise<number | null>;
}

/** Leaves out the time of a long-running command's event. */
function parseEvent(line: string): Record<string, unknown> {
  const { time, ...row } = JSON.parse(line) as Record<string, unknown>;
  if (time !== undefined && Number.isNaN(Date.parse(time as string)))
    throw new Error(`no valid time: ${line}`);
  return row;
}

export interface CommandResult {
  code: number | null;
  stdout: string;
  stderr: string;
  /** The objects that it printed, one a line. */
  json<Row>(): Row[];
}

/** Runs a command that ends by itself. @param args as for `runAgent`. */
export async function runToEnd(args: string[], options?: AgentOptions): Promise<CommandResult> {
  await using agent = await runAgent(args, options);
  const code = await agent.exit;
  const { stdout, stderr } = agent;
  return {
    code,
    stdout,
    stderr,
    json: <Row>() =>
      stdout
        .trim()
        .split("\n")
        .filter(Boolean)
        .map((line) => JSON.parse(line) as Row),
  };
}

/** @param args the arguments of `underpass`; `TOKEN` is replaced by the path of the token's file. */
export async function runAgent(args: string[], options: AgentOptions = {}): Promise<RunningAgent> {
  const home = await createTemporaryDir();
  const tokenFile = join(home, "token");
  if (options.token) await writeFile(tokenFile, options.token);
  const command = options.command ?? AGENT_COMMAND;
  const [program = "", ...rest] = [...(options.prefix ?? []), ...command];
  const child = spawn(program, [...rest, ...args.map((arg) => arg.replace("TOKEN", tokenFile))], {
    cwd: home,
    env: { ...NODE_ENVIRONMENT, HOME: home, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const exit = once(child, "close").then(([code]) => code as number | null);
  const find = (name: string, tunnel?: string) =>
    stdout
      .split("\n")
      .filter((line) => line.endsWith("}"))
      .map((line) => parseEvent(line))
      .find((row) => row.event === name && (tunnel === undefined || row.tunnel === tunnel));

  return {
    child,
    get stdout() {
      return stdout;
    },
    get stderr() {
      return stderr;
    },
    async event(name, tunnel) {
      const ended = exit.then(() => "ended" as const);
      for (;;) {
        const found = find(name, tunnel);
        if (found) return found;
        if ((await Promise.race([once(child.stdout, "data"), ended])) === "ended")
          throw new Error(`no ${name}:\n${stdout}${stderr}`);
      }
    },
    exit,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exit;
      await rm(home, { recursive: true, force: true });
    },
  };
}
