/**
 * A relay in a process of its own, which a test can stop and restart. Agents reach it through TCP and UDP proxies that
 * can be made to fail.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { ROOT } from "../../../self-host/build/build.ts";
import { waitUntil, type TestApi } from "../server/api.ts";
import { NODE_ENVIRONMENT } from "../node-environment.ts";
import { reservePorts } from "../ports.ts";
import {
  startFaultProxy as startTcpProxy,
  type FaultProxy as TcpProxy,
} from "../../../chaos/faults/fault-proxy.ts";
import { startUdpProxy, type UdpProxy } from "../relay/udp-proxy.ts";

/**
 * Another address of this machine, so that the proxies can use the relay's port numbers. macOS has no second loopback
 * address for IPv4.
 */
const PROXY_ADDRESS = process.platform === "linux" ? "127.0.0.2" : "::1";
const PORTS = 12;

export interface RelayProcessOptions {
  id?: string;
  /** `http://127.0.0.1:<port>` of the API. */
  apiUrl: string;
  secret: string;
  /** Number of public ports, in addition to the relay's own port. */
  ports?: number;
  /** The relay's own port, which the public ports follow; by default free ones. */
  port?: number;
  /** The address to listen on, if agents reach the relay without the proxies. */
  address?: string;
  /** Precedes the command: `ip netns exec …`. */
  prefix?: string[];
  env?: Record<string, string>;
}

export interface RelayBehindProxies extends AsyncDisposable {
  id: string;
  /** The relay's own port, TCP and UDP. */
  port: number;
  /** The proxies for agents: control connection and datagrams. */
  tcp: TcpProxy;
  udp: UdpProxy;
  readonly pid: number;
  readonly output: string;
  /** @param portCount of public ports; by default as before. */
  start(portCount?: number): Promise<void>;
  /** With `SIGKILL` it can't close its connections. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Returns a metric by name and labels in the text format; undefined when it does not exist. */
  metric(name: string): Promise<number | undefined>;
}

export async function startRelayProcess(options: RelayProcessOptions): Promise<RelayBehindProxies> {
  const { id = "main", ports = PORTS, address = "127.0.0.1", prefix = [] } = options;
  const port = options.port ?? (await reservePorts(ports + 1));
  const at = { address: PROXY_ADDRESS, port };
  const tcp = await startTcpProxy(port, { at: { host: PROXY_ADDRESS, port } });
  const udp = await startUdpProxy(port, at);
  let child: ChildProcess | undefined;
  let output = "";

  async function start(portCount = ports): Promise<void> {
    const [program, ...args] = [...prefix, process.execPath, join(ROOT, "relay/main.ts")];
    child = spawn(program, args, {
      env: {
        ...NODE_ENVIRONMENT,
        RELAY_ID: id,
        RELAY_API_URL: options.apiUrl,
        RELAY_SECRET: options.secret,
        RELAY_HOST: address,
        RELAY_BIND: address,
        RELAY_PORT_RANGE: `${port}-${port + portCount}`,
        RELAY_URL: options.address === undefined ? tcp.url.replace("http:", "ws:") : "",
        ...options.env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => (output += text));
    await waitUntilHealthy();
  }

  /** Resolves when the relay listens. */
  async function waitUntilHealthy(): Promise<void> {
    await waitUntil(async () => {
      if (child?.exitCode !== null) throw new Error(`the relay ended:\n${output}`);
      const answer = await fetch(`http://${address}:${port}/health`).catch(() => undefined);
      await answer?.arrayBuffer();
      return answer?.ok;
    });
  }

  async function stop(signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, "exit");
    child.kill(signal);
    await exit;
  }

  await start();
  return {
    id,
    port,
    tcp,
    udp,
    get pid() {
      return child?.pid ?? 0;
    },
    get output() {
      return output;
    },
    start,
    stop,
    async metric(name) {
      const answer = await fetch(`http://${address}:${port}/metrics`);
      const line = (await answer.text()).split("\n").find((text) => text.startsWith(`${name} `));
      return line === undefined ? undefined : Number(line.slice(name.length + 1));
    },
    async [Symbol.asyncDispose]() {
      await stop();
      await Promise.all([tcp[Symbol.asyncDispose](), udp[Symbol.asyncDispose]()]);
    },
  };
}

/** Resolves when the API has registered the relay and assigns its ports. */
export async function waitUntilLinked(api: TestApi, relay: RelayBehindProxies): Promise<void> {
  const text = "select id from relays where id = $1 and connected_epoch is not null";
  try {
    await waitUntil(async () => (await api.sql(text, [relay.id])).length > 0);
  } catch (error) {
    const output = `${relay.output}\n${api.server.output}`;
    throw new Error(`the API does not know ${relay.id}:\n${output}`, { cause: error });
  }
}
