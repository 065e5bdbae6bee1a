/**
 * Runs commands as a person types them: in a shell, in a directory, at a terminal or with their output piped. Each has a
 * process group of its own, so that Ctrl-C reaches all processes that it started, as at a terminal.
 */
import { spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { readFile } from "node:fs/promises";
import { delimiter } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { NODE_ENVIRONMENT } from "./node-environment.ts";
import { WAIT_MAX_MS } from "./timeouts.ts";

export interface TypeOptions {
  cwd: string;
  env?: Record<string, string>;
  /** At a pseudo-terminal; requires `canOpenTerminals()`. */
  atTerminal?: boolean;
}

export interface TerminalCommand extends AsyncDisposable {
  /** All output so far, without colors and cursor movements. */
  readonly output: string;
  /** Resolves with the match when it has been printed; rejects when the command exits without printing it. */
  waitForOutput(pattern: RegExp, maxMs?: number): Promise<RegExpExecArray>;
  write(text: string): void;
  /** The process id of the command itself, at a terminal. */
  getPid(): Promise<number>;
  /** Sends what Ctrl-C sends. Resolves with the exit code; null when a signal ended the command, as with npx itself. */
  interrupt(): Promise<number | null>;
  exit: Promise<number | null>;
}

/** Terminals are opened by the `script` of util-linux; that of other systems has other arguments. */
export function canOpenTerminals(): boolean {
  const { stdout } = spawnSync("script", ["--version"], { encoding: "utf8" });
  return stdout?.includes("util-linux") ?? false;
}

/** The PATH of a user, without the commands of installed packages, which only npm scripts have. */
export function getUserPath(): string {
  const entries = (process.env.PATH ?? "").split(delimiter);
  return entries.filter((entry) => !entry.includes("node_modules")).join(delimiter);
}

export function typeCommand(
  command: string,
  { cwd, env, atTerminal = false }: TypeOptions,
): TerminalCommand {
  const [program, ...args]: [string, ...string[]] = atTerminal
    ? ["script", "-qec", `stty cols 120 rows 40; exec ${command}`, "/dev/null"]
    : ["sh", "-c", `exec ${command}`];
  const child = spawn(program, args, {
    cwd,
    detached: true,
    env: { ...NODE_ENVIRONMENT, PATH: getUserPath(), TERM: "xterm-256color", ...env },
  });
  let printed = "";
  const events = new EventEmitter<{ printed: [] }>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
      events.emit("printed");
    });
  }
  const exit = once(child, "close").then(([code]) => code as number | null);
  const output = (): string => {
    // A screen moves the cursor to the start of each row that it writes.
    const rows = printed.replace(/\u001b\[\d+;1H/g, "\n");
    return stripVTControlCharacters(rows).replaceAll("\r", "");
  };

  async function waitForOutput(pattern: RegExp, maxMs = WAIT_MAX_MS): Promise<RegExpExecArray> {
    const signal = AbortSignal.timeout(maxMs);
    const ended = Promise.race([exit, once(signal, "abort")]).then(() => "ended" as const);
    for (;;) {
      const match = pattern.exec(output());
      if (match) return match;
      if ((await Promise.race([once(events, "printed"), ended])) !== "ended") continue;
      throw new Error(`${command} did not print ${String(pattern)}:\n${output()}`);
    }
  }
  function interrupt(): Promise<number | null> {
    if (atTerminal) child.stdin.write("\u0003");
    else process.kill(-(child.pid ?? 0), "SIGINT");
    return exit;
  }

  return {
    get output() {
      return output();
    },
    waitForOutput,
    write: (text) => void child.stdin.write(text),
    getPid: async () =>
      Number(await readFile(`/proc/${child.pid}/task/${child.pid}/children`, "utf8")),
    interrupt,
    exit,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) await interrupt();
    },
  };
}
