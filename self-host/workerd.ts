/**
 * workerd with the production bundle: its configuration, and the two things that the server asks of the
 * Worker's `Control` entry point over a socket that only its owner can open.
 */
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { request } from "node:http";
import { createRequire } from "node:module";
import { isIPv6 } from "node:net";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { DRAIN_MAX_MS, WORKERD_STOP_MAX_MS } from "../protocol/limits.ts";
import { ROOT, WORKER_DIR } from "./build.ts";
import { Child } from "./child.ts";
import type { DataDir } from "./data-dir.ts";
import { writePrivateFile } from "./files.ts";
import type { Log } from "./log.ts";

export interface WorkerdOptions {
  dataDir: DataDir;
  host: string;
  port: number;
  /** A host name that the API answers to. */
  apiHost: string;
  gatewayAddress: string;
  bindings: Record<string, string>;
  allowPrivateFetch: boolean;
  log: Log;
}

export interface Workerd {
  child: Child;
  /** Tells the agents to go and waits for requests in flight. */
  drain(): Promise<void>;
  runCron(): Promise<void>;
}

/** Resolves when the Worker answers. */
export async function startWorkerd(options: WorkerdOptions): Promise<Workerd> {
  const { dataDir, host, port, apiHost, bindings, log } = options;
  const controlSocket = await socketPath(dataDir);
  const configPath = join(dataDir.runDir, "workerd.capnp");
  await writePrivateFile(configPath, await configuration(options, controlSocket));

  const child = new Child(
    {
      name: "workerd",
      command: createRequire(import.meta.url).resolve("workerd/bin/workerd"),
      args: ["serve", configPath],
      // Secrets are in its environment: in a file they could be left behind.
      options: { env: bindings },
      probe: async () => {
        const target = { host: reachable(host), port, headers: { host: apiHost } };
        await ask({ ...target, method: "GET", path: "/health" }, HEALTH_MAX_MS);
      },
      // One that was killed leaves its socket behind, and the next can't bind to it.
      prepare: () => rm(controlSocket, { force: true }),
      onSpawn: (pid) => dataDir.noteWorkerd(pid),
      onLine: (line, stream) => {
        if (!isStackOfAddresses(line)) {
          log.passOn("worker", stream === "stdout" ? "info" : "warn", line);
        }
      },
      stopSignal: "SIGTERM",
      stopMaxMs: WORKERD_STOP_MAX_MS,
      lastSignal: "SIGKILL",
    },
    log,
  );
  await child.start();
  const control = (path: string, maxMs: number) =>
    ask({ socketPath: controlSocket, method: "POST", path }, maxMs);
  return {
    child,
    drain: () => control("/drain", DRAIN_MAX_MS + HEALTH_MAX_MS),
    runCron: () => control("/cron", CRON_MAX_MS),
  };
}

const HEALTH_MAX_MS = 2_000;
const CRON_MAX_MS = 10 * 60_000;
/** The kernel's limit for the path of a socket is 104 bytes on macOS, 108 on Linux. */
const SOCKET_PATH_MAX_BYTES = 103;

async function socketPath({ runDir }: DataDir): Promise<string> {
  const path = join(runDir, "control.sock");
  if (Buffer.byteLength(path) <= SOCKET_PATH_MAX_BYTES) return path;
  return join(await mkdtemp(join(tmpdir(), "underpass-")), "control.sock");
}

/** workerd's own failures come with one, which says nothing to anybody without its symbols. */
function isStackOfAddresses(line: string): boolean {
  return line.startsWith("stack: ");
}

async function configuration(options: WorkerdOptions, controlSocket: string): Promise<string> {
  const { dataDir, host, port, gatewayAddress, bindings, allowPrivateFetch } = options;
  const { compatibilityDate, compatibilityFlags, objects } = parseWranglerToml(
    await readFile(join(ROOT, "wrangler.toml"), "utf8"),
  );
  const modules = (await readdir(WORKER_DIR))
    .filter((name) => /\.(js|wasm)$/.test(name))
    .sort((a, b) => Number(b === "index.js") - Number(a === "index.js"))
    .map((name) => {
      const kind = name.endsWith(".wasm") ? "wasm" : "esModule";
      const path = relative(dataDir.runDir, join(WORKER_DIR, name));
      return `(name = ${quote(name)}, ${kind} = embed ${quote(path)})`;
    });
  const address = `${isIPv6(host) ? `[${host}]` : host}:${port}`;
  return `using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  # A small young generation: short pauses and little memory, at the same throughput.
  v8Flags = ["--max-semi-space-size=1", "--min-semi-space-size=1"],
  services = [
    (name = "main", worker = (
      modules = ${list(modules)},
      compatibilityDate = ${quote(compatibilityDate)},
      compatibilityFlags = ${list(compatibilityFlags.map(quote))},
      durableObjectNamespaces = ${list(
        objects.map(
          ({ className }) =>
            `(className = ${quote(className)}, uniqueKey = ${quote(`underpass-${className}`)}, enableSql = true)`,
        ),
      )},
      durableObjectStorage = (localDisk = "objects"),
      bindings = ${list([
        ...objects.map(
          ({ binding, className }) =>
            `(name = ${quote(binding)}, durableObjectNamespace = ${quote(className)})`,
        ),
        `(name = "ROWS", service = (name = "main", entrypoint = "Rows"))`,
        `(name = "DATABASE_GATEWAY", service = "gateway")`,
        `(name = "MAIL_GATEWAY", service = "gateway")`,
        ...Object.keys(bindings).map(
          (name) => `(name = ${quote(name)}, fromEnvironment = ${quote(name)})`,
        ),
      ])},
    )),
    # What tenants name is fetched from here: never from this machine or its network.
    (name = "internet", network = (
      allow = ${list((allowPrivateFetch ? ["public", "private"] : ["public"]).map(quote))},
      tlsOptions = (trustBrowserCas = true),
    )),
    (name = "gateway", external = (address = ${quote(gatewayAddress)}, http = ())),
    (name = "objects", disk = (path = ${quote(dataDir.objectsDir)}, writable = true)),
  ],
  sockets = [
    (name = "main", address = ${quote(address)}, http = (), service = "main"),
    (name = "control", address = ${quote(`unix:${controlSocket}`)}, http = (),
      service = (name = "main", entrypoint = "Control")),
  ],
);
`;
}

interface WranglerFacts {
  compatibilityDate: string;
  compatibilityFlags: string[];
  objects: { binding: string; className: string }[];
}

/** The few lines of wrangler.toml that hold here too, so that both runtimes run the same. */
export function parseWranglerToml(toml: string): WranglerFacts {
  const [, compatibilityDate] = /^compatibility_date = "(.+)"$/m.exec(toml) ?? [];
  const [, flags = ""] = /^compatibility_flags = \[(.*)\]$/m.exec(toml) ?? [];
  const objects = toml.matchAll(
    /^\[\[durable_objects\.bindings\]\]\nname = "(.+)"\nclass_name = "(.+)"$/gm,
  );
  if (compatibilityDate === undefined) throw new Error("wrangler.toml has no compatibility_date");
  return {
    compatibilityDate,
    compatibilityFlags: [...flags.matchAll(/"(.+?)"/g)].map(([, flag = ""]) => flag),
    objects: [...objects].map(([, binding = "", className = ""]) => ({ binding, className })),
  };
}

/** A text of the configuration's language. Settings are not in it, only names and paths. */
function quote(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}

function list(items: string[]): string {
  return items.length === 0 ? "[]" : `[\n        ${items.join(",\n        ")},\n      ]`;
}

/** An address that listens everywhere is reached by this machine's own. */
function reachable(host: string): string {
  return host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
}

interface Question {
  method: string;
  path: string;
  socketPath?: string;
  host?: string;
  port?: number;
  headers?: Record<string, string>;
}

function ask(question: Question, maxMs: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const { method, path } = question;
  request({ ...question, agent: false, signal: AbortSignal.timeout(maxMs) }, (response) => {
    const { statusCode = 0 } = response;
    response.on("error", reject);
    response.resume().on("end", () => {
      if (statusCode >= 200 && statusCode < 300) resolve();
      else reject(new Error(`${method} ${path} answered ${statusCode}`));
    });
  })
    .on("error", reject)
    .end();
  return promise;
}
