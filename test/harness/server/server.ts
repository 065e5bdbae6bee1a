/**
 * A real self-hosted server for a test: the same command as `npm start`, in a process of its own, with a free port and
 * a new data directory.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import "../fetch-keep-alive.ts";
import { createPreparedDir, createTemporaryDir } from "../directories.ts";
import { NODE_ENVIRONMENT } from "../node-environment.ts";
import { reservePort, reservePorts } from "../ports.ts";

const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../../..");
/** Ends a wait for a server that does not start. */
const READY_MAX_MS = 150_000;

export interface ServerOptions {
  /** Settings by name, in addition to the defaults for tests. */
  env?: Record<string, string>;
  /** Also starts the relay, on free ports. */
  relay?: boolean;
  /** The directory of an earlier server; by default a new one, which is removed when the server stops. */
  dataDir?: string;
  /** How many files and connections each process of the server may have open. */
  descriptors?: number;
  /** The directory of another version of the server, with its packages. */
  checkout?: string;
  /** Receives the output of the server as it is printed. */
  onOutput?: (text: string) => void;
}

export interface TestServer extends AsyncDisposable {
  /** `http://127.0.0.1:<port>`: the API. */
  url: string;
  port: number;
  /** The URL of a tunnel: browsers and curl resolve its host, Node.js does not. */
  tunnelUrl(subdomain: string): string;
  dataDir: string;
  /** All output so far. */
  readonly output: string;
  /** The code for creating the first account, while there is none. */
  setupCode: string | undefined;
  /** The URL of the embedded database. */
  databaseUrl(): Promise<string>;
  getPid(part: "server" | "workerd" | "postgres"): Promise<number>;
  /** Resolves with the exit code when the server has exited. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
  /** Kills only the server with `kill -9`: its children keep running. */
  kill(): Promise<void>;
}

export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const newDir = options.env?.DATABASE_URL === undefined ? createPreparedDir : createTemporaryDir;
  const ownDir = options.dataDir === undefined ? await newDir() : undefined;
  const dataDir = options.dataDir ?? ownDir ?? "";
  const settings = {
    PORT: String(await reservePort()),
    ...(options.relay && (await relaySettings())),
    ...options.env,
    DATA_DIR: dataDir,
  };
  const run = launch(settings, options);
  const remove = async () => {
    if (ownDir !== undefined) await rm(ownDir, { recursive: true, force: true });
  };
  const listening = await run.waitForLine("listening").catch(async (error: unknown) => {
    await remove();
    throw error;
  });
  // Its URL has the public port, which is another one if the server also listens for HTTPS.
  const port = settings.PORT === "0" ? new URL(String(listening.url)).port : settings.PORT;
  async function stop(signal: NodeJS.Signals = "SIGTERM"): Promise<number | null> {
    run.child.kill(signal);
    const { code } = await run.exit;
    await remove();
    return code;
  }
  return createTestServer({
    url: `http://127.0.0.1:${port}`,
    dataDir,
    pid: run.child.pid ?? 0,
    setupCode: typeof listening.setupCode === "string" ? listening.setupCode : undefined,
    output: run.output,
    stop,
    async kill() {
      run.child.kill("SIGKILL");
      await run.exit;
    },
  });
}

interface RunningServer extends Pick<TestServer, "url" | "dataDir" | "setupCode"> {
  pid: number;
  output: () => string;
  stop: (signal?: NodeJS.Signals) => Promise<number | null>;
  kill: () => Promise<void>;
}

export function createTestServer(running: RunningServer): TestServer {
  const { url, dataDir, pid, setupCode, output, stop, kill } = running;
  const port = Number(new URL(url).port);

  async function postmaster(): Promise<string[]> {
    return (await readFile(join(dataDir, "postgres/postmaster.pid"), "utf8")).split("\n");
  }
  async function getPid(part: "server" | "workerd" | "postgres"): Promise<number> {
    switch (part) {
      case "server":
        return pid;
      case "workerd": {
        const note = await readFile(join(dataDir, "run/server.json"), "utf8");
        return (JSON.parse(note) as { workerd: number }).workerd;
      }
      case "postgres":
        return Number((await postmaster())[0]);
    }
  }

  return {
    url,
    port,
    tunnelUrl: (subdomain) => `http://${subdomain}.localhost:${port}`,
    dataDir,
    get output() {
      return output();
    },
    setupCode,
    async databaseUrl() {
      const secrets = await readFile(join(dataDir, "secrets.json"), "utf8");
      const { postgres: password } = JSON.parse(secrets) as { postgres: string };
      const [, , , databasePort = ""] = await postmaster();
      return `postgresql://underpass:${password}@127.0.0.1:${databasePort}/postgres`;
    },
    getPid,
    stop,
    kill,
    async [Symbol.asyncDispose]() {
      await stop();
    },
  };
}

const RELAY_PORTS = 20;

async function relaySettings(): Promise<Record<string, string>> {
  const first = await reservePorts(RELAY_PORTS);
  return { LOCAL_RELAY: "on", RELAY_PORT_RANGE: `${first}-${first + RELAY_PORTS - 1}` };
}

export interface ExitResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Starts a server that is expected to exit with an error. */
export async function startExpectingFailure(
  env: Record<string, string>,
  options: LaunchOptions = {},
): Promise<ExitResult> {
  return launch(env, options).exit;
}

type LaunchOptions = Pick<ServerOptions, "descriptors" | "onOutput" | "checkout">;

interface ServerProcess {
  child: ChildProcess;
  exit: Promise<ExitResult>;
  output: () => string;
  /** Resolves with the log entry that has this message. */
  waitForLine(message: string): Promise<Record<string, unknown>>;
}

/** What `npm start` runs, from another directory. */
function readStartCommand(checkout: string): string {
  const manifest = JSON.parse(readFileSync(join(checkout, "package.json"), "utf8")) as {
    scripts: { start: string };
  };
  return manifest.scripts.start.replace("self-host/", `${relative(tmpdir(), checkout)}/self-host/`);
}

function launch(
  env: Record<string, string>,
  { descriptors, onOutput, checkout = ROOT }: LaunchOptions = {},
): ServerProcess {
  const limit = descriptors === undefined ? "" : `ulimit -n ${descriptors} && `;
  const child = spawn("/bin/sh", ["-c", limit + readStartCommand(checkout)], {
    // Ignores a .env file of the checkout and the environment of the test run.
    cwd: tmpdir(),
    env: {
      ...NODE_ENVIRONMENT,
      PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
      PORT: "0",
      AUTH_RATE_LIMIT: "off",
      LOCAL_RELAY: "off",
      // The disk of the test run may be almost full.
      DISK_RESERVE_MB: "0",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    onOutput?.(text);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
    onOutput?.(text);
  });
  const exit = once(child, "close").then(([code]) => ({
    code: code as number | null,
    stdout,
    stderr,
  }));
  const find = (message: string) =>
    stdout
      .split("\n")
      .filter((line) => line.includes(message) && line.endsWith("}"))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .find((entry) => entry.message === message);

  async function waitForLine(message: string): Promise<Record<string, unknown>> {
    const deadline = AbortSignal.timeout(READY_MAX_MS);
    const ended = exit.then(() => "ended" as const);
    for (;;) {
      const entry = find(message);
      if (entry) return entry;
      const more = once(child.stdout, "data", { signal: deadline }).catch(() => "late" as const);
      const event = await Promise.race([more, ended]);
      if (event !== "ended" && event !== "late") continue;
      child.kill();
      throw new Error(`no server (${event}):\n${stdout}${stderr}`);
    }
  }
  return { child, exit, output: () => stdout + stderr, waitForLine };
}
