/**
 * A relay in a process of its own, which a test can stop and start again, and the path that agents take to it:
 * TCP and UDP go through proxies that can fail.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { ROOT } from "../../../self-host/build/build.ts";
import { waitUntil, type TestApi } from "../server/api.ts";
import { reservePorts } from "../ports.ts";
import {
  startRelay as startTcpProxy,
  type Relay as TcpProxy,
} from "../tunnel/faulty-connection.ts";
import { startUdpProxy, type UdpProxy } from "../relay/udp-proxy.ts";

/**
 * Another address of this machine, so that the proxies have the relay's own port numbers. macOS has no other
 * one of IPv4.
 */
const PROXY_ADDRESS = process.platform === "linux" ? "127.0.0.2" : "::1";
const PORTS = 12;

export interface RelayProcessOptions {
  id?: string;
  /** `http://127.0.0.1:<port>` of the API. */
  apiUrl: string;
  secret: string;
  /** How many ports it hands out, beside its own. */
  ports?: number;
  /** Its own, the others follow; otherwise any that are free. */
  port?: number;
  /** Where it listens, when agents are to reach it without the proxies. */
  address?: string;
  /** What stands before its command: `ip netns exec …`. */
  prefix?: string[];
  env?: Record<string, string>;
}

export interface RelayProcess extends AsyncDisposable {
  id: string;
  /** Its own port, of TCP and UDP. */
  port: number;
  /** The agent's path: control connection, and datagrams. */
  tcp: TcpProxy;
  udp: UdpProxy;
  readonly pid: number;
  readonly output: string;
  start(): Promise<void>;
  /** `SIGKILL`: it can't take leave of anybody. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** A value of its metrics by name and labels, as they are written; undefined when there is none. */
  metric(name: string): Promise<number | undefined>;
}

export async function startRelayProcess(options: RelayProcessOptions): Promise<RelayProcess> {
  const { id = "main", ports = PORTS, address = "127.0.0.1", prefix = [] } = options;
  const port = options.port ?? (await reservePorts(ports + 1));
  const at = { address: PROXY_ADDRESS, port };
  const tcp = await startTcpProxy(port, { host: PROXY_ADDRESS, port });
  const udp = await startUdpProxy(port, at);
  let child: ChildProcess | undefined;
  let output = "";

  async function start(): Promise<void> {
    const [program = "", ...args] = [...prefix, process.execPath, join(ROOT, "relay/main.ts")];
    child = spawn(program, args, {
      env: {
        PATH: process.env.PATH,
        RELAY_ID: id,
        RELAY_API_URL: options.apiUrl,
        RELAY_SECRET: options.secret,
        RELAY_HOST: address,
        RELAY_BIND: address,
        RELAY_PORT_RANGE: `${port}-${port + ports}`,
        RELAY_URL: options.address === undefined ? tcp.url.replace("http:", "ws:") : "",
        ...options.env,
      },
      stdio: ["ignore", "pipe", "pipe"],
    });
    for (const stream of [child.stdout, child.stderr])
      stream?.setEncoding("utf8").on("data", (text: string) => (output += text));
    await healthy();
  }

  /** Resolves once it listens. */
  async function healthy(): Promise<void> {
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

/** Resolves once the API knows the relay and would hand out its ports. */
export async function waitUntilLinked(api: TestApi, relay: RelayProcess): Promise<void> {
  const text = "select id from relays where id = $1 and connected_epoch is not null";
  try {
    await waitUntil(async () => (await api.sql(text, [relay.id])).length > 0);
  } catch (error) {
    const output = `${relay.output}\n${api.server.output}`;
    throw new Error(`the API does not know ${relay.id}:\n${output}`, { cause: error });
  }
}
