/**
 * The agent's side of a TCP tunnel. It has two connections, each of which reconnects by itself: one to the API, which decides
 * whether the tunnel is served at all and carries the clients of `underpass connect`, and one to the relay, which carries the
 * visitors of the public port.
 */
import { EventEmitter } from "node:events";
import { TCP_CAPABILITY, type Welcome } from "../../protocol/wire/frames.ts";
import { fetchRelayAccess } from "../relay-client/access.ts";
import { ServiceApi } from "../service-api.ts";
import {
  TCP_TUNNEL_OPTIONS,
  toQuery,
  type TcpTunnelSettings,
  type TunnelSettings,
} from "../tunnel-options.ts";
import { TunnelConnection, type RejectionError } from "../tunnel-connection.ts";
import { TcpStream, type ConnectionReport } from "./connect-stream.ts";
import type { ProxyProtocol } from "./proxy-protocol.ts";
import { RelayStreams } from "./relay-streams.ts";
import type { TcpTarget } from "./tcp-target.ts";

export interface TcpTunnelOptions {
  target: TcpTarget;
  server: URL;
  token: Buffer;
  settings: TunnelSettings & TcpTunnelSettings;
  proxyProtocol: ProxyProtocol | undefined;
}

export interface TcpTunnelInfo {
  tunnelId: string;
  /** `tcp://host:port` */
  url: string;
  publicPort: number;
  name: string;
}

interface TcpTunnelEventMap {
  /** Visitors can connect. */
  ready: [tunnel: TcpTunnelInfo];
  disconnected: [reason: string];
  reconnected: [tunnel: TcpTunnelInfo];
  retrying: [reason: string, inMs: number];
  /** The tunnel's owner stopped it: the agent waits until it is started again. */
  stopped: [explanation: string];
  rejected: [rejection: RejectionError];
  /** A connection through the tunnel has ended. */
  connection: [connection: ConnectionReport];
}

export class TcpTunnel extends EventEmitter<TcpTunnelEventMap> {
  readonly #options: TcpTunnelOptions;
  readonly #api: ServiceApi;
  readonly #connection: TunnelConnection;
  #relay: RelayStreams | undefined;
  #served: TcpTunnelInfo | undefined;
  #isClosed = false;

  constructor(options: TcpTunnelOptions) {
    super();
    this.#options = options;
    this.#api = new ServiceApi(options.server, options.token);
    const { target, proxyProtocol, settings } = options;
    this.#connection = new TunnelConnection({
      ...options,
      query: { protocol: "tcp", port: String(target.port) },
      firstQuery: toQuery(TCP_TUNNEL_OPTIONS, settings),
      capabilities: [TCP_CAPABILITY],
      openStream: (wire, id, opening) => {
        if (opening.type !== "connect") return null;
        const onFinished = (connection: ConnectionReport): void =>
          void this.emit("connection", connection);
        return new TcpStream(wire, id, opening.peer, { target, proxyProtocol, onFinished });
      },
    });
    this.#forwardEvents();
  }

  start(): void {
    this.#connection.start();
  }

  /** Ends the tunnel: connections through it are reset. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#relay?.close();
    await this.#connection.close();
  }

  #forwardEvents(): void {
    const connection = this.#connection;
    connection.on("ready", (welcome) => this.#openRelay(welcome));
    connection.on("reconnected", (welcome) => {
      // Losing the connection to the API does not affect the relay's; only a stop has closed it.
      if (this.#relay) this.#reconnected();
      else this.#openRelay(welcome);
    });
    connection.on("disconnected", (reason) => this.emit("disconnected", reason));
    connection.on("retrying", (reason, inMs) => this.emit("retrying", reason, inMs));
    connection.on("stopped", (explanation) => {
      this.#closeRelay();
      this.emit("stopped", explanation);
    });
    connection.on("rejected", (rejection) => this.#reject(rejection));
  }

  #openRelay({ tunnelId, url, name }: Welcome): void {
    if (this.#isClosed) return;
    const { target, proxyProtocol } = this.#options;
    this.#relay = new RelayStreams({
      target,
      proxyProtocol,
      getAccess: (signal) =>
        fetchRelayAccess(this.#api, `/tunnels/${tunnelId}/relay-ticket`, signal),
      onConnected: (publicPort) => {
        const isFirst = this.#served === undefined;
        this.#served = { tunnelId, url, name, publicPort };
        if (isFirst) this.emit("ready", this.#served);
        else this.#reconnected();
      },
      onDisconnected: (reason) => this.emit("disconnected", `the relay: ${reason}`),
      onRetrying: (reason, inMs) => this.emit("retrying", `the relay: ${reason}`, inMs),
      onRejected: (rejection) => this.#reject(rejection),
      onFinished: (finished) => this.emit("connection", finished),
    });
  }

  #closeRelay(): void {
    this.#relay?.close();
    this.#relay = undefined;
  }

  #reconnected(): void {
    if (this.#served) this.emit("reconnected", this.#served);
  }

  #reject(rejection: RejectionError): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closeRelay();
    void this.#connection.close();
    this.emit("rejected", rejection);
  }
}
