/**
 * Runs workerd with the production bundle. The server sends two kinds of requests to the Worker's `Control` entry
 * point, over a socket that only its owner can open: drain, and run the scheduled job.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { request } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DRAIN_TIMEOUT_MS } from "../../protocol/limits.ts";
import { SupervisedProcess } from "../processes/child.ts";
import type { DataDir } from "../data-dir.ts";
import { writePrivateFile } from "../files.ts";
import type { Log } from "../log.ts";
import { buildConfiguration } from "./configuration.ts";
import { MINUTE_MS } from "../../shared/time.ts";

/** workerd keeps running while any socket is open, but after the drain there is nothing left to wait for. */
const WORKERD_STOP_MAX_MS = 3_000;

export interface WorkerdOptions {
  dataDir: DataDir;
  host: string;
  port: number;
  /** A host name of the API. */
  apiHost: string;
  gatewayAddress: string;
  bindings: Record<string, string>;
  allowPrivateFetch: boolean;
  log: Log;
}

export interface Workerd {
  child: SupervisedProcess;
  /** Notifies the agents and waits for requests in flight. */
  drain(): Promise<void>;
  runCron(): Promise<void>;
}

/** Resolves when the Worker serves requests. */
export async function startWorkerd(options: WorkerdOptions): Promise<Workerd> {
  const { dataDir, host, port, apiHost, bindings, log } = options;
  const controlSocket = await socketPath(dataDir);
  const configPath = join(dataDir.runDir, "workerd.capnp");
  await writePrivateFile(
    configPath,
    await buildConfiguration({ ...options, controlSocket, bindingNames: Object.keys(bindings) }),
  );

  const child = new SupervisedProcess(
    {
      name: "workerd",
      command: createRequire(import.meta.url).resolve("workerd/bin/workerd"),
      args: ["serve", configPath],
      // Secrets are passed in the environment, because a file with them could be left behind.
      spawnOptions: { env: bindings },
      probe: async () => {
        const target = { host: toConnectableHost(host), port, headers: { host: apiHost } };
        await sendRequest({ ...target, method: "GET", path: "/health" }, HEALTH_MAX_MS);
      },
      // A killed workerd leaves its socket behind, and the next one could not bind to that path.
      prepare: () => rm(controlSocket, { force: true }),
      onSpawn: (pid) => dataDir.recordWorkerd(pid),
      onLine: (line, stream) => {
        if (!isNativeStackTrace(line)) {
          log.forward("worker", stream === "stdout" ? "info" : "warn", line);
        }
      },
      stopSignal: "SIGTERM",
      stopMaxMs: WORKERD_STOP_MAX_MS,
      signalOnParentExit: "SIGKILL",
    },
    log,
  );
  await child.start();
  const control = (path: string, maxMs: number) =>
    sendRequest({ socketPath: controlSocket, method: "POST", path }, maxMs);
  return {
    child,
    drain: () => control("/drain", DRAIN_TIMEOUT_MS + HEALTH_MAX_MS),
    runCron: () => control("/cron", CRON_MAX_MS),
  };
}

const HEALTH_MAX_MS = 2_000;
const CRON_MAX_MS = 10 * MINUTE_MS;
/** The kernel's limit for the path of a socket is 104 bytes on macOS and 108 on Linux, including the final zero. */
const SOCKET_PATH_MAX_BYTES = 103;

async function socketPath({ runDir }: DataDir): Promise<string> {
  const path = join(runDir, "control.sock");
  if (Buffer.byteLength(path) <= SOCKET_PATH_MAX_BYTES) return path;
  return join(await mkdtemp(join(tmpdir(), "underpass-")), "control.sock");
}

/** workerd logs native stack traces with its own errors. They are useless without debug symbols. */
function isNativeStackTrace(line: string): boolean {
  return line.startsWith("stack: ");
}

/** Returns the address to connect to for an address to listen on: for a wildcard address, the loopback one. */
export function toConnectableHost(host: string): string {
  return host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
}

interface RequestTarget {
  method: string;
  path: string;
  socketPath?: string;
  host?: string;
  port?: number;
  headers?: Record<string, string>;
}

function sendRequest(question: RequestTarget, maxMs: number): Promise<void> {
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
