/** The whole stack of TCP tunnels: a server, a relay in a process of its own, `underpass tcp`, a local server. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { runAgent, type AgentOptions, type RunningAgent } from "../../tunnel/agent.ts";
import { startNetworkStack, type NetworkStack } from "../../networks/stack.ts";
import type { RelayProcessOptions } from "../../networks/relay-process.ts";

export interface TcpStack extends NetworkStack {
  /** Runs `underpass tcp --json`, and waits until visitors can connect. */
  serve(local: number | string, args?: string[], options?: AgentOptions): Promise<ServedTunnel>;
  /** Runs `underpass connect --json`, and waits until its local port listens. */
  connect(tunnel: string, args?: string[], options?: AgentOptions): Promise<ConnectedTunnel>;
}

export interface ServedTunnel extends RunningAgent {
  tunnelId: string;
  url: string;
  publicPort: number;
  /** A visitor's connection to the public port. */
  visit(): Promise<Socket>;
}

interface ConnectedTunnel extends RunningAgent {
  port: number;
  /** A connection to the local port. */
  visit(): Promise<Socket>;
}

/** @param options without an `address`, agents reach the relay through proxies that can fail. */
export async function startTcpStack(options: Partial<RelayProcessOptions> = {}): Promise<TcpStack> {
  const stack = await startNetworkStack(options);
  const common = ["--server", stack.api.server.url, "--token-file", "TOKEN", "--json"];
  return {
    ...stack,
    async serve(local, args = [], options = {}) {
      const agent = await runAgent(["tcp", String(local), ...common, ...args], {
        token: stack.token,
        ...options,
      });
      const ready = await agent.event("ready");
      const { tunnelId, url, publicPort } = ready as unknown as ServedTunnel;
      const visit = () => openSocket(publicPort);
      return withProperties(agent, { tunnelId, url, publicPort, visit });
    },
    async connect(tunnel, args = ["--listen", "127.0.0.1:0"], options = {}) {
      const agent = await runAgent(["connect", tunnel, ...common, ...args], {
        token: stack.token,
        ...options,
      });
      const { port } = (await agent.event("ready")) as { port: number };
      return withProperties(agent, { port, visit: () => openSocket(port) });
    },
  };
}

/** Getters stay getters. */
function withProperties<Base extends object, More extends object>(base: Base, more: More) {
  return Object.defineProperties(more, Object.getOwnPropertyDescriptors(base)) as Base & More;
}

export async function openSocket(port: number): Promise<Socket> {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true, noDelay: true });
  await once(socket, "connect");
  socket.on("error", () => undefined);
  return socket;
}

export interface LocalServer extends AsyncDisposable {
  port: number;
  /** Open connections. */
  readonly sockets: Set<Socket>;
}

/** A TCP server of a test. @param at a port, or the path of a Unix socket. Default: a free port. */
export async function startLocalServer(
  handle: (socket: Socket) => void,
  at: number | string = 0,
): Promise<LocalServer> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    handle(socket);
  });
  if (typeof at === "string") server.listen(at);
  else server.listen(at, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

/** Sends back what it receives. */
export function startEcho(at?: number | string): Promise<LocalServer> {
  return startLocalServer((socket) => socket.pipe(socket), at);
}
