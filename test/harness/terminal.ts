/**
 * Commands as a person types them: in a shell, in a directory, at a terminal or with their output piped.
 * Each leads a process group, so that Ctrl-C reaches all that it started, as it would at a terminal.
 */
import { spawn, spawnSync } from "node:child_process";
import { EventEmitter, once } from "node:events";
import { delimiter } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { WAIT_MAX_MS } from "./timeouts.ts";

export interface TypeOptions {
  cwd: string;
  env?: Record<string, string>;
  /** At a pseudo-terminal, which takes `canOpenTerminals()`. */
  atTerminal?: boolean;
}

export interface TerminalCommand extends AsyncDisposable {
  /** Everything that it printed so far, without colours and cursor movements. */
  readonly output: string;
  /** Resolves with the match once it was printed; rejects when the command ends without. */
  waitForOutput(pattern: RegExp, maxMs?: number): Promise<RegExpExecArray>;
  write(text: string): void;
  /** What Ctrl-C does. Resolves with the exit code, null when a signal ended it, as it does npx itself. */
  interrupt(): Promise<number | null>;
  exit: Promise<number | null>;
}

/** util-linux's `script` is what opens them; that of other systems takes other arguments. */
export function canOpenTerminals(): boolean {
  const { stdout } = spawnSync("script", ["--version"], { encoding: "utf8" });
  return stdout?.includes("util-linux") ?? false;
}

/** The commands of this repository's own packages are for its scripts: a person has not got them. */
export function getUserPath(): string {
  const entries = (process.env.PATH ?? "").split(delimiter);
  return entries.filter((entry) => !entry.includes("node_modules")).join(delimiter);
}

export function typeCommand(command: string, { cwd, env, atTerminal = false }: TypeOptions): TerminalCommand {
  const [program, ...args]: [string, ...string[]] = atTerminal
    ? ["script", "-qec", `stty cols 120 rows 40; exec ${command}`, "/dev/null"]
    : ["sh", "-c", `exec ${command}`];
  const child = spawn(program, args, {
    cwd,
    detached: true,
    env: { PATH: getUserPath(), TERM: "xterm-256color", ...env },
  });
  let printed = "";
  const news = new EventEmitter<{ printed: [] }>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
      news.emit("printed");
    });
  }
  const exit = once(child, "close").then(([code]) => code as number | null);
  const output = (): string => stripVTControlCharacters(printed).replaceAll("\r", "");

  async function waitForOutput(pattern: RegExp, maxMs = WAIT_MAX_MS): Promise<RegExpExecArray> {
    const signal = AbortSignal.timeout(maxMs);
    const over = Promise.race([exit, once(signal, "abort")]).then(() => "over" as const);
    for (;;) {
      const match = pattern.exec(output());
      if (match) return match;
      if ((await Promise.race([once(news, "printed"), over])) !== "over") continue;
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
    interrupt,
    exit,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) await interrupt();
    },
  };
}
