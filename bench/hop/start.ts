/**
 * A bare call of a Durable Object on workerd, and a bare tunnel through one: the same runtime, flags and settings as the self-hosted
 * server.
 */
import { rmSync } from "node:fs";
import { mkdtemp, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startFrontProxy } from "../../self-host/front-proxy/front-proxy.ts";
import { SMALL_YOUNG_GENERATION } from "../../self-host/processes/v8-flags.ts";
import { WRANGLER_CONFIG } from "../../self-host/workerd/wrangler-config.ts";
import { silentLog } from "../../test/harness/directories.ts";
import { reservePort } from "../../test/harness/ports.ts";
import { BENCH, spawnQuiet, startProgram, stopChild, type Program } from "../processes.ts";

const SOCKET = "front.sock";
const PROBE_SOCKET = "probe.sock";

interface Hop extends Program {
  /** The same behind a front proxy like the server's. */
  startFrontProxy(): Promise<Program>;
  /** The agent of the bare tunnel, which visitors of the host `tunnel` reach: the lower bound for a self-hosted tunnel. */
  startBareAgent(frontPort: number, originPort: number): Promise<Program>;
}

export async function startHop(): Promise<Hop> {
  const directory = await mkdtemp(join(tmpdir(), "underpass-hop-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  const port = await reservePort();
  const config = join(directory, "hop.capnp");
  await writeFile(config, buildConfiguration(directory, port));
  const workerd = createRequire(import.meta.url).resolve("workerd/bin/workerd");
  const child = spawnQuiet(workerd, ["serve", config]);
  for (let tries = 0; ; tries += 1) {
    const answered = await fetch(`http://127.0.0.1:${port}/`).catch(() => null);
    if (answered?.ok) break;
    if (tries > 200) throw new Error("the bare hop did not start");
    await sleep(50);
  }
  return {
    port,
    pid: child.pid ?? 0,
    async startFrontProxy() {
      const frontPort = await reservePort();
      const proxy = await startFrontProxy({
        host: "127.0.0.1",
        port: frontPort,
        https: undefined,
        apiHosts: [],
        upstreamPaths: { tunnel: join(directory, SOCKET), api: join(directory, SOCKET) },
        probePath: join(directory, PROBE_SOCKET),
        controlPath: join(directory, "metrics.sock"),
        traceRequests: "off",
        limits: { total: 1_000, perSource: Infinity },
        log: silentLog,
      });
      return { port: frontPort, pid: proxy.pid ?? 0, stop: () => proxy.stop() };
    },
    startBareAgent: (frontPort, originPort) =>
      startProgram("hop/bare-agent.ts", [String(frontPort), String(originPort)]),
    stop: () => stopChild(child),
  };
}

function buildConfiguration(directory: string, port: number): string {
  const flags = SMALL_YOUNG_GENERATION.map((flag) => JSON.stringify(flag)).join(", ");
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .main),
    (name = "disk", disk = (path = ${JSON.stringify(directory)}, writable = true)),
  ],
  sockets = [
    (name = "http", address = "127.0.0.1:${port}", http = (), service = "main"),
    (name = "front", address = "unix:${join(directory, SOCKET)}", http = (), service = "main"),
    (name = "probe", address = "unix:${join(directory, PROBE_SOCKET)}", http = (), service = "disk"),
  ],
  v8Flags = [${flags}],
);
const main :Workerd.Worker = (
  modules = [${["worker.js", "bare-tunnel.js"].map((name) => embedModule(directory, name)).join(", ")}],
  compatibilityDate = "${WRANGLER_CONFIG.compatibilityDate}",
  compatibilityFlags = ${JSON.stringify(WRANGLER_CONFIG.compatibilityFlags)},
  durableObjectNamespaces = [
    (className = "Hop", uniqueKey = "hop", enableSql = true),
    (className = "BareTunnel", uniqueKey = "tunnel", enableSql = true),
  ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [
    (name = "HOP", durableObjectNamespace = "Hop"),
    (name = "TUNNEL", durableObjectNamespace = "BareTunnel"),
  ],
);
`;
}

function embedModule(directory: string, name: string): string {
  const path = relative(directory, join(BENCH, "hop", name));
  return `(name = ${JSON.stringify(name)}, esModule = embed ${JSON.stringify(path)})`;
}
