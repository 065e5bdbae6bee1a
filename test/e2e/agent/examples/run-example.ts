/** A program of examples/, run as its user runs it: in a project of its own, after `underpass login`. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, cp, mkdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../../../../self-host/build/build.ts";
import { createTemporaryDir } from "../../../harness/directories.ts";
import { NODE_ENVIRONMENT } from "../../../harness/node-environment.ts";

/** A machine's login, as `underpass login` saves it. */
export interface Login {
  server: string;
  /** In base64. */
  token: string;
}

export interface RunningExample extends AsyncDisposable {
  /** The project's directory: a copy, which a test may change. */
  dir: string;
  /** Resolves with the match of the pattern in what the program has printed so far or prints later. */
  waitFor(pattern: RegExp): Promise<RegExpExecArray>;
  stop(signal: NodeJS.Signals): void;
  exit: Promise<number | null>;
}

interface Manifest {
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

/**
 * @param name the example's folder.
 * @param command a program in `node_modules/.bin`, or `node`, with its arguments.
 */
export async function runExample(
  name: string,
  [program = "", ...args]: string[],
  login: Login,
  env: Record<string, string> = {},
): Promise<RunningExample> {
  const home = await createTemporaryDir();
  const dir = join(home, name);
  await cp(join(ROOT, "examples", name), dir, { recursive: true });
  await installDependencies(dir);
  await saveLogin(home, login);
  const path = program === "node" ? process.execPath : join(ROOT, "node_modules/.bin", program);
  const child = spawn(path, args, {
    cwd: dir,
    env: { ...NODE_ENVIRONMENT, HOME: home, NO_COLOR: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let printed = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (printed += text));
  const exit = once(child, "close").then(([code]) => code as number | null);
  return {
    dir,
    async waitFor(pattern) {
      const ended = exit.then(() => "ended" as const);
      for (;;) {
        const match = pattern.exec(printed);
        if (match) return match;
        const more = [once(child.stdout, "data"), once(child.stderr, "data")];
        if ((await Promise.race([...more, ended])) === "ended" && !pattern.test(printed))
          throw new Error(`${name} ended without printing ${String(pattern)}:\n${printed}`);
      }
    },
    stop: (signal) => void child.kill(signal),
    exit,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await exit;
      await rm(home, { recursive: true, force: true });
    },
  };
}

/** Nothing but the packages that the example's package.json names. */
async function installDependencies(dir: string): Promise<void> {
  const text = await readFile(join(dir, "package.json"), "utf8");
  const { dependencies, devDependencies } = JSON.parse(text) as Manifest;
  const modules = join(dir, "node_modules");
  await mkdir(modules);
  for (const name of Object.keys({ ...dependencies, ...devDependencies }))
    await symlink(join(ROOT, "node_modules", name), join(modules, name));
}

async function saveLogin(home: string, { server, token }: Login): Promise<void> {
  const settings = join(home, ".config/underpass");
  await mkdir(settings, { recursive: true });
  const credentials = { servers: { [server]: { token, label: "example" } }, defaultServer: server };
  const path = join(settings, "credentials.json");
  await writeFile(path, JSON.stringify(credentials));
  await chmod(path, 0o600);
}
