/** Runs the built command `underpass` in a pseudo-terminal, and reads its screen cell by cell as a person sees it. */
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { spawn, type IPty } from "@lydell/node-pty";
import headless, { type Terminal } from "@xterm/headless";
import { createTemporaryDir } from "./directories.ts";
import { NODE_ENVIRONMENT } from "./node-environment.ts";
import { WAIT_MAX_MS } from "./timeouts.ts";
import { AGENT_COMMAND } from "./tunnel/agent.ts";

export interface ScreenOptions {
  token: Uint8Array;
  width?: number;
  height?: number;
  env?: Record<string, string>;
  /** A shell's command line that runs `$UNDERPASS`, instead of the command alone. */
  shell?: string;
}

export interface Screen extends AsyncDisposable {
  pid: number;
  terminal: Terminal;
  /** The visible rows without the spaces at their ends. */
  readonly rows: string[];
  /** The rows that have scrolled out, and the visible ones. */
  readonly allRows: string[];
  /** All bytes that were written to the terminal since `clearReceived()`. */
  readonly received: string;
  clearReceived(): void;
  /** Resolves when the visible rows match. */
  waitFor(pattern: RegExp): Promise<void>;
  /** Resolves when the bytes written to the terminal match. */
  waitForReceived(pattern: RegExp): Promise<void>;
  press(keys: string): void;
  resize(width: number, height: number): void;
  kill(signal: string): void;
  exit: Promise<number>;
}

/** @param args the arguments of `underpass`; `TOKEN` is replaced by the path of the token's file. */
export async function openScreen(args: string[], options: ScreenOptions): Promise<Screen> {
  const { token, width = 80, height = 24, shell } = options;
  const home = await createTemporaryDir();
  const tokenFile = join(home, "token");
  await writeFile(tokenFile, token);
  const command = [...AGENT_COMMAND, ...args.map((arg) => arg.replace("TOKEN", tokenFile))];
  const [program = "", ...rest] =
    shell === undefined ? command : ["bash", "--norc", "--noprofile", ...shell.split(" ")];
  const inherited: Record<string, string | undefined> = { ...process.env, ...NODE_ENVIRONMENT };
  delete inherited["CI"];
  // The command is not started by npm, as the tests are.
  delete inherited["npm_command"];
  const pty: IPty = spawn(program, rest, {
    cols: width,
    rows: height,
    cwd: home,
    name: options.env?.["TERM"] ?? "xterm-256color",
    env: {
      ...inherited,
      HOME: home,
      UNDERPASS: command.join(" "),
      ...options.env,
    },
  });
  const terminal = new headless.Terminal({
    cols: width,
    rows: height,
    allowProposedApi: true,
    scrollback: 1_000,
  });
  let received = "";
  const listeners = new Set<() => void>();
  pty.onData((data) => {
    received += data;
    terminal.write(data, () => {
      for (const listener of listeners) listener();
    });
  });
  const exit = new Promise<number>((resolve) => {
    // The last bytes are parsed before.
    pty.onExit(({ exitCode }) => terminal.write("", () => resolve(exitCode)));
  });

  function readRows(from: number): string[] {
    const { active } = terminal.buffer;
    return Array.from(
      { length: active.baseY + terminal.rows - from },
      (_, at) => active.getLine(from + at)?.translateToString(true) ?? "",
    );
  }
  const getRows = (): string[] => readRows(terminal.buffer.active.baseY);

  async function waitUntil(isDone: () => boolean, describe: () => string): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      const check = (): void => {
        if (!isDone()) return;
        clearTimeout(timeout);
        listeners.delete(check);
        resolve();
      };
      const timeout = setTimeout(() => {
        listeners.delete(check);
        reject(new Error(describe()));
      }, WAIT_MAX_MS);
      listeners.add(check);
      check();
    });
  }

  return {
    pid: pty.pid,
    terminal,
    get rows() {
      return getRows();
    },
    get allRows() {
      return readRows(0);
    },
    get received() {
      return received;
    },
    clearReceived: () => (received = ""),
    waitFor: (pattern) =>
      waitUntil(
        () => pattern.test(getRows().join("\n")),
        () => `the screen does not show ${String(pattern)}:\n${getRows().join("\n")}`,
      ),
    waitForReceived: (pattern) =>
      waitUntil(
        () => pattern.test(received),
        () => `the terminal did not get ${String(pattern)}: ${JSON.stringify(received)}`,
      ),
    press: (keys) => pty.write(keys),
    resize(columns, rows) {
      terminal.resize(columns, rows);
      pty.resize(columns, rows);
    },
    kill: (signal) => pty.kill(signal),
    exit,
    async [Symbol.asyncDispose]() {
      try {
        pty.kill("SIGKILL");
      } catch {
        // It has ended.
      }
      await exit;
      await rm(home, { recursive: true, force: true });
    },
  };
}
