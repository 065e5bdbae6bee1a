/**
 * One TCP tunnel as the agent keeps it. It has two connections, each of which is made again when it is lost: to the
 * API, which says whether the tunnel is served at all and brings clients of `underpass connect`, and to the relay,
 * which brings the visitors of the public port.
 */
import { EventEmitter } from "node:events";
import { TCP_CAPABILITY, type Welcome } from "../../protocol/wire/frames.ts";
import { fetchRelayAccess } from "../relay-client/access.ts";
import { TunnelConnection, type Rejected } from "../tunnel-connection.ts";
import { ConnectStream, type FinishedConnection } from "./connect-stream.ts";
import type { ProxyProtocol } from "./proxy-protocol.ts";
import { RelayStreams } from "./relay-streams.ts";
import type { TcpTarget } from "./tcp-target.ts";

export interface TcpTunnelOptions {
  target: TcpTarget;
  server: URL;
  token: Buffer;
  subdomain: string | undefined;
  project: string | undefined;
  ttlSeconds: number | undefined;
  /** The public port that is asked for. */
  remotePort: number | undefined;
  /** Blocks that visitors may come from, as the tunnel begins; none: what is set for the tunnel holds. */
  allow: string[];
  proxyProtocol: ProxyProtocol | undefined;
}

export interface ServedTcpTunnel {
  tunnelId: string;
  /** `tcp://host:port` */
  url: string;
  publicPort: number;
  name: string;
}

interface TcpTunnelEventMap {
  /** Visitors can connect. */
  ready: [tunnel: ServedTcpTunnel];
  disconnected: [reason: string];
  reconnected: [tunnel: ServedTcpTunnel];
  retrying: [reason: string, inMs: number];
  /** Its owner stopped the tunnel: the agent waits until it is started again. */
  stopped: [explanation: string];
  rejected: [rejection: Rejected];
  /** A connection has ended. */
  connection: [connection: FinishedConnection];
}

export class TcpTunnel extends EventEmitter<TcpTunnelEventMap> {
  readonly #options: TcpTunnelOptions;
  readonly #connection: TunnelConnection;
  #relay: RelayStreams | undefined;
  #served: ServedTcpTunnel | undefined;
  #isClosed = false;

  constructor(options: TcpTunnelOptions) {
    super();
    this.#options = options;
    const { target, proxyProtocol, allow, remotePort } = options;
    this.#connection = new TunnelConnection({
      ...options,
      query: { protocol: "tcp", port: String(target.port) },
      firstQuery: {
        ...(remotePort === undefined ? {} : { remote_port: String(remotePort) }),
        ...(allow.length === 0 ? {} : { allow: allow.join(",") }),
      },
      capabilities: [TCP_CAPABILITY],
      open: (wire, id, opening) => {
        if (opening.type !== "connect") return null;
        const finished = (connection: FinishedConnection): void =>
          void this.emit("connection", connection);
        return new ConnectStream(wire, id, opening.peer, { target, proxyProtocol, finished });
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
      // A plain loss of the connection to the API leaves the relay's alone; a stop ended it.
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
    const { server, token, target, proxyProtocol } = this.#options;
    this.#relay = new RelayStreams({
      target,
      proxyProtocol,
      getAccess: (signal) =>
        fetchRelayAccess(server, token, `/tunnels/${tunnelId}/relay-ticket`, signal),
      connected: (publicPort) => {
        const isFirst = this.#served === undefined;
        this.#served = { tunnelId, url, name, publicPort };
        if (isFirst) this.emit("ready", this.#served);
        else this.#reconnected();
      },
      disconnected: (reason) => this.emit("disconnected", `the relay: ${reason}`),
      retrying: (reason, inMs) => this.emit("retrying", `the relay: ${reason}`, inMs),
      rejected: (rejection) => this.#reject(rejection),
      finished: (finished) => this.emit("connection", finished),
    });
  }

  #closeRelay(): void {
    this.#relay?.close();
    this.#relay = undefined;
  }

  #reconnected(): void {
    if (this.#served) this.emit("reconnected", this.#served);
  }

  #reject(rejection: Rejected): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#closeRelay();
    void this.#connection.close();
    this.emit("rejected", rejection);
  }
}
