/**
 * The agent's side of a TCP tunnel. It has two connections, each of which reconnects by itself: one to the API, which decides
 * whether the tunnel is served at all and carries the clients of `underpass connect`, and one to the relay, which carries the
 * visitors of the public port. A private tunnel has only the first one.
 */
import { EventEmitter } from "node:events";
import { CLOSE } from "../../protocol/wire/close-codes.ts";
import { TCP_CAPABILITY, type Welcome } from "../../protocol/wire/frames.ts";
import { formatHostAndPort } from "../../shared/hosts.ts";
import { OFF } from "../gates/off.ts";
import type { TunnelGates } from "../gates/tunnel-gates.ts";
import { fetchRelayAccess } from "../relay-client/fetch-relay-access.ts";
import type { ServerAccess } from "../server-access.ts";
import { ServiceApi } from "../service-api.ts";
import {
  TCP_QUERY_OPTIONS,
  toQuery,
  type TcpTunnelSettings,
  type TunnelSettings,
} from "../tunnel/tunnel-options.ts";
import { describeTtlLimit } from "../tunnel/ttl-limit.ts";
import { TunnelConnection } from "../tunnel/tunnel-connection.ts";
import type { RejectionError } from "../rejection-error.ts";
import { formatConnectCommand } from "./connect-command.ts";
import { TcpStream } from "./tcp-stream.ts";
import type { ConnectionReport, OnConnection } from "./connection-report.ts";
import type { ProxyProtocol } from "./proxy-protocol.ts";
import { RelayStreams } from "./relay-streams.ts";
import { describeListening } from "../local-server/restart-wait.ts";
import { LocalTcpServer } from "./local-tcp-server.ts";
import type { TcpTarget } from "./tcp-target.ts";

export interface TcpTunnelOptions extends ServerAccess {
  target: TcpTarget;
  /** The tunnel has no public port. */
  isPrivate: boolean;
  settings: TunnelSettings & TcpTunnelSettings;
  proxyProtocol: ProxyProtocol | undefined;
}

interface TcpTunnelInfo {
  tunnelId: string;
  /** `tcp://host:port`; null for a private tunnel. */
  url: string | null;
  /** The command that connects to a private tunnel; undefined for others. */
  connect: string | undefined;
  /** Undefined for a private tunnel. */
  publicPort: number | undefined;
  name: string;
  /** RFC 3339; undefined when the tunnel never expires, or the server does not say when. */
  expiresAt: string | undefined;
}

interface TcpTunnelEventMap {
  /** Visitors can connect, or the clients of a private tunnel. */
  ready: [tunnel: TcpTunnelInfo];
  disconnected: [reason: string];
  reconnected: [tunnel: TcpTunnelInfo];
  retrying: [reason: string, inMs: number];
  /** The tunnel's owner stopped it: the agent waits until it is started again. */
  stopped: [explanation: string, name: string | undefined];
  rejected: [rejection: RejectionError];
  /** How many milliseconds the server took to answer the latest heartbeat. */
  latency: [ms: number];
  gates: [gates: TunnelGates];
  notice: [message: string];
  /** A local server that accepted connections refuses them now, or accepts them again. The message is for the user. */
  localServer: [isListening: boolean, message: string];
  /** A visitor has connected: `openConnections` has its report. */
  connectionOpened: [];
  /** A connection through the tunnel has ended. */
  connection: [connection: ConnectionReport];
}

export class TcpTunnel extends EventEmitter<TcpTunnelEventMap> {
  readonly #options: TcpTunnelOptions;
  readonly #api: ServiceApi;
  readonly #connection: TunnelConnection;
  readonly #local: LocalTcpServer;
  #relay: RelayStreams | undefined;
  #served: TcpTunnelInfo | undefined;
  /** Connections that were lost and are not back. The tunnel has reconnected when there are none. */
  readonly #lostConnections = new Set<"api" | "relay">();
  /** Where `--inspect` listens; undefined when it is off. */
  inspectUrl: string | undefined;
  #isClosed = false;
  readonly #openConnections = new Set<() => ConnectionReport>();

  constructor(options: TcpTunnelOptions) {
    super();
    this.#options = options;
    this.#api = new ServiceApi(options, options.token);
    const { target, proxyProtocol, settings, isPrivate } = options;
    const server = new LocalTcpServer(target, (isListening) =>
      this.emit("localServer", isListening, describeListening(isListening, target.text)),
    );
    this.#local = server;
    this.#connection = new TunnelConnection({
      ...options,
      query: {
        protocol: "tcp",
        port: String(target.port),
        ...(isPrivate && { private: "true" }),
      },
      firstQuery: toQuery(TCP_QUERY_OPTIONS, settings),
      ownGates: settings.allow?.some((block) => block !== OFF) ? ["addresses"] : [],
      capabilities: [TCP_CAPABILITY],
      local: target.text,
      openStream: (wire, id, opening) => {
        if (opening.type !== "connect") return null;
        const onConnection: OnConnection = (read) => this.#openConnection(read);
        return new TcpStream(wire, id, opening.peer, { server, proxyProtocol, onConnection });
      },
    });
    this.#forwardEvents();
  }

  get isPrivate(): boolean {
    return this.#options.isPrivate;
  }

  /** The tunnel as the server described it; undefined until visitors can connect. */
  get info(): TcpTunnelInfo | undefined {
    return this.#served;
  }

  /** Reports of the connections that are open now. */
  get openConnections(): ConnectionReport[] {
    return [...this.#openConnections].map((read) => read());
  }

  get server(): URL {
    return this.#options.server;
  }

  /** Opens and closes a connection. @returns why the local server does not accept it, in a sentence; null when it does. */
  findConnectProblem(): Promise<string | null> {
    return this.#local.findConnectProblem();
  }

  start(): void {
    this.#connection.start();
  }

  /** Ends the tunnel: connections through it are reset. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#local.endWaits();
    this.#relay?.close();
    await this.#connection.close();
  }

  #forwardEvents(): void {
    const connection = this.#connection;
    connection.on("ready", (welcome) => {
      const notice = describeTtlLimit(welcome);
      if (notice !== undefined) this.emit("notice", notice);
      this.#serve(welcome);
    });
    connection.on("reconnected", (welcome) => {
      // Losing the connection to the API does not affect the relay's; only a stop has closed it.
      if (!this.#relay) this.#serve(welcome);
      this.#restore("api");
    });
    connection.on("disconnected", (reason) => this.#lose("api", reason));
    connection.on("retrying", (reason, inMs) => this.emit("retrying", reason, inMs));
    connection.on("latency", (ms) => this.emit("latency", ms));
    connection.on("gates", (gates) => this.emit("gates", gates));
    connection.on("stopped", (explanation, name) => {
      if (this.#relay) this.#lostConnections.add("relay");
      this.#closeRelay();
      this.emit("stopped", explanation, name);
    });
    connection.on("rejected", (rejection) => this.#reject(rejection));
  }

  #serve(welcome: Welcome): void {
    if (this.#isClosed) return;
    if (!this.#options.isPrivate) return this.#openRelay(welcome);
    const { tunnelId, name, expiresAt } = welcome;
    const isFirst = !this.#served;
    const connect = formatConnectCommand(name);
    this.#served = { tunnelId, url: null, connect, name, publicPort: undefined, expiresAt };
    if (isFirst) this.emit("ready", this.#served);
  }

  #openRelay({ tunnelId, name, expiresAt }: Welcome): void {
    const { proxyProtocol, authorities } = this.#options;
    this.#relay = new RelayStreams({
      server: this.#local,
      proxyProtocol,
      authorities,
      getAccess: (signal, unusablePort) =>
        fetchRelayAccess(this.#api, `/tunnels/${tunnelId}/relay-ticket`, signal, unusablePort),
      onConnected: ({ relay, port: publicPort }) => {
        const before = this.#served;
        const url = `tcp://${formatHostAndPort(relay.host, publicPort)}`;
        this.#served = { tunnelId, url, connect: undefined, name, publicPort, expiresAt };
        if (!before) return void this.emit("ready", this.#served);
        this.#restore("relay");
        // The operator has changed the relay's host or its range of ports.
        if (before.url !== url) this.emit("notice", `visitors now connect to ${url}`);
      },
      onDisconnected: (reason, code) => {
        // The connection to the API reports that the tunnel was stopped, before or after this.
        if (code === CLOSE.tunnel_stopped) this.#lostConnections.add("relay");
        else this.#lose("relay", `the connection to the relay ended (${reason})`);
      },
      onRetrying: (reason, inMs, code) => {
        const explanation =
          code === CLOSE.port_unusable
            ? `${reason}, or choose another remote port`
            : `the relay can't be reached (${reason})`;
        this.emit("retrying", explanation, inMs);
      },
      onRejected: (rejection) => this.#reject(rejection),
      onConnection: (read) => this.#openConnection(read),
    });
  }

  #openConnection(read: () => ConnectionReport): (problem?: string) => void {
    this.#openConnections.add(read);
    this.emit("connectionOpened");
    return (problem) => {
      this.#openConnections.delete(read);
      this.emit("connection", { ...read(), ...(problem === undefined ? {} : { problem }) });
    };
  }

  #closeRelay(): void {
    this.#relay?.close();
    this.#relay = undefined;
  }

  #lose(connection: "api" | "relay", reason: string): void {
    this.#lostConnections.add(connection);
    this.emit("disconnected", reason);
  }

  #restore(connection: "api" | "relay"): void {
    this.#lostConnections.delete(connection);
    if (this.#lostConnections.size === 0 && this.#served) this.emit("reconnected", this.#served);
  }

  #reject(rejection: RejectionError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closeRelay();
    void this.#connection.close();
    this.emit("rejected", rejection);
  }
}
