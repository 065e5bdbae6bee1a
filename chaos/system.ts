/**
 * The system under test: a self-hosted server with its database and relay, agents in processes of their own, and fault
 * proxies on every path between them.
 */
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { getProcessName, listChildren } from "../bench/processes.ts";
import { mintToken } from "../bench/api.ts";
import { createFirstAccount } from "../bench/stack.ts";
import { startPostgres, type EmbeddedPostgres } from "../self-host/postgres/postgres.ts";
import { silentLog } from "../test/harness/directories.ts";
import { reservePort, reservePorts } from "../test/harness/ports.ts";
import type { Random } from "../test/harness/random.ts";
import { startServer, type TestServer } from "../test/harness/server/server.ts";
import { buildClockEnvironment, setClock, SupervisedAgent } from "./agent.ts";
import { startFaultProxy, type FaultProxy } from "./faults/fault-proxy.ts";
import type { PathName, ProcessName } from "./faults/fault-plan.ts";
import type { History } from "./history.ts";
import { startOrigin, type Origin } from "./load/origin.ts";
import { Owner } from "./owner.ts";

const RELAY_PORTS = 10;
const RESTART_DELAY_MS = 500;
const TCP_TUNNEL = "echo";
/** The folder of a database that the server does not start itself. */
const EXTERNAL_DATABASE = "external";
const DATABASE_PASSWORD = "password-of-chaos-experiments";

interface SystemOptions {
  random: Random;
  history: History;
  /** The server's data directory, and that of an external database. */
  dataDir: string;
  /** `external`: not started by the server, which reaches it through a fault proxy. */
  database: "embedded" | "external";
  httpAgents: number;
  hasTcpAgent: boolean;
  /** Receives the output of the server. */
  onServerOutput?: (text: string) => void;
}

export class System {
  readonly #options: SystemOptions;
  readonly #env: Record<string, string>;
  readonly #cleanup = new AsyncDisposableStack();
  readonly #clockFiles: Record<"agents" | "server", string>;
  readonly proxies = new Map<PathName, FaultProxy>();
  /** By the name of their tunnel. */
  readonly agents = new Map<string, SupervisedAgent>();
  /** The ids of the tunnels, by name. */
  readonly tunnelIds = new Map<string, string>();
  server!: TestServer;
  owner!: Owner;

  private constructor(options: SystemOptions, env: Record<string, string>) {
    this.#options = options;
    const { dataDir } = options;
    this.#clockFiles = {
      agents: join(dataDir, "agents.clock"),
      server: join(dataDir, "server.clock"),
    };
    this.#env = { ...env, ...buildClockEnvironment(this.#clockFiles.server) };
  }

  static async start(options: SystemOptions): Promise<System> {
    const firstRelayPort = await reservePorts(RELAY_PORTS);
    const relay = await startFaultProxy(firstRelayPort, options);
    const system = new System(options, {
      PORT: String(await reservePort()),
      DEFAULT_PLAN: "enterprise",
      LOCAL_RELAY: "on",
      RELAY_PORT_RANGE: `${firstRelayPort}-${firstRelayPort + RELAY_PORTS - 1}`,
      RELAY_URL: `ws://127.0.0.1:${relay.port}`,
    });
    system.#addProxy("relay", relay);
    try {
      await system.#startAll();
    } catch (error) {
      await system.stop();
      throw error;
    }
    return system;
  }

  async #startAll(): Promise<void> {
    const { history, httpAgents, hasTcpAgent, database } = this.#options;
    if (database === "external") await this.#startDatabase();
    this.server = await this.#startServer();
    this.#cleanup.defer(() => this.server.stop().then(() => undefined));
    const agents = await this.#startProxy("agents", this.server.port);
    const visitors = await this.#startProxy("visitors", this.server.port);
    const account = await createFirstAccount(this.server);
    const { accessToken } = account;
    const token = await mintToken(
      { server: this.server, accessToken },
      { tunnelQuota: 100, bandwidthLimitMbps: 10_000, ttlHours: 24 },
    );
    this.owner = new Owner(`http://127.0.0.1:${visitors.port}`, account, accessToken);
    const origin = await startOrigin(history);
    this.#cleanup.use(origin);
    const start = (name: string, kind: "http" | "tcp") =>
      this.#startAgent(name, kind, { token, origin, agentsPort: agents.port });
    for (let at = 1; at <= httpAgents; at += 1) await start(`web-${at}`, "http");
    if (!hasTcpAgent) return;
    const { publicPort } = await start(TCP_TUNNEL, "tcp");
    await this.#startProxy("streams", Number(publicPort));
  }

  async #startAgent(
    name: string,
    kind: "http" | "tcp",
    { token, origin, agentsPort }: { token: Uint8Array; origin: Origin; agentsPort: number },
  ): Promise<Record<string, unknown>> {
    const port = kind === "http" ? origin.httpPort : origin.tcpPort;
    const options = ["--server", `http://127.0.0.1:${agentsPort}`, "--token-file", "TOKEN"];
    const agent = new SupervisedAgent(
      {
        name,
        args: [kind, `127.0.0.1:${port}`, ...options, "--subdomain", name, "--json"],
        token,
        env: buildClockEnvironment(this.#clockFiles.agents),
      },
      this.#options.history,
    );
    this.agents.set(name, agent);
    this.#cleanup.defer(() => agent.stop());
    const ready = await agent.start();
    this.tunnelIds.set(name, String(ready.tunnelId));
    return ready;
  }

  /** The host of an HTTP tunnel, as its visitors send it. */
  getHost(name: string): string {
    return `${name}.localhost:${this.server.port}`;
  }

  /** Texts that are in the environment of processes without the data directory. */
  get processMarks(): string[] {
    return [`RELAY_PORT_RANGE=${this.#env.RELAY_PORT_RANGE}`];
  }

  /** The names of the HTTP tunnels. */
  get httpTunnels(): string[] {
    return [...this.agents.keys()].filter((name) => name !== TCP_TUNNEL);
  }

  async getPid(process: ProcessName): Promise<number | undefined> {
    switch (process) {
      case "workerd":
      case "server":
        return this.server.getPid(process);
      case "postgres":
        return this.#readPostgresPid();
      case "front-proxy":
      case "relay":
        return listChildren(await this.server.getPid("server")).find(
          (pid) => getProcessName(pid) === process,
        );
      case "http-agent":
        return this.agents.get(this.#options.random.pick(this.httpTunnels))?.pid;
      case "tcp-agent":
        return this.agents.get(TCP_TUNNEL)?.pid;
    }
  }

  /** Kills a process, which is started again: by the server, or like the server itself from here. */
  async kill(name: ProcessName): Promise<void> {
    const pid = await this.getPid(name);
    if (pid === undefined) throw new Error(`the process ${name} is not running`);
    process.kill(pid, "SIGKILL");
    if (name === "server") await this.#restartServer();
  }

  async setClock(programs: "agents" | "server", minutes: number): Promise<void> {
    const agents = [...this.agents.values()].filter((agent) => agent.hasStarted);
    const pids =
      programs === "agents"
        ? agents.map(({ pid }) => pid).filter((pid) => pid !== undefined)
        : [await this.server.getPid("server")];
    await setClock(this.#clockFiles[programs], pids, minutes);
  }

  #startServer(): Promise<TestServer> {
    const { dataDir, onServerOutput: onOutput } = this.#options;
    return startServer({ dataDir, env: this.#env, ...(onOutput && { onOutput }) });
  }

  async #restartServer(): Promise<void> {
    await this.server.kill();
    for (;;) {
      try {
        this.server = await this.#startServer();
        return;
      } catch {
        // Its disk may be full now.
        await sleep(RESTART_DELAY_MS);
      }
    }
  }

  async #startDatabase(): Promise<void> {
    await mkdir(join(this.#options.dataDir, EXTERNAL_DATABASE), { mode: 0o700 });
    const postgres: EmbeddedPostgres = await startPostgres(
      join(this.#options.dataDir, EXTERNAL_DATABASE),
      DATABASE_PASSWORD,
      silentLog,
    );
    this.#cleanup.defer(() => postgres.stop());
    const url = new URL(postgres.url);
    const proxy = await this.#startProxy("database", Number(url.port));
    url.port = String(proxy.port);
    this.#env.DATABASE_URL = url.href;
  }

  async #readPostgresPid(): Promise<number> {
    if (this.#options.database === "embedded") return this.server.getPid("postgres");
    const file = join(this.#options.dataDir, EXTERNAL_DATABASE, "postgres/postmaster.pid");
    return Number((await readFile(file, "utf8")).split("\n")[0]);
  }

  async #startProxy(path: PathName, port: number): Promise<FaultProxy> {
    const proxy = await startFaultProxy(port, this.#options);
    this.#addProxy(path, proxy);
    return proxy;
  }

  #addProxy(path: PathName, proxy: FaultProxy): void {
    this.proxies.set(path, proxy);
    this.#cleanup.use(proxy);
  }

  async stop(): Promise<void> {
    await this.#cleanup.disposeAsync();
  }
}
