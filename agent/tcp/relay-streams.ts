/** Serves a TCP tunnel at its relay: the control connection, data connections, and visitors' connections. */
import type { Socket } from "node:net";
import type { VisitorHead, TunnelWelcome } from "../../protocol/relay/control.ts";
import type { RelayAccess } from "../../protocol/schemas/networks.ts";
import { reset, Splice } from "../../sockets/splice.ts";
import type { TrustedAuthorities } from "../outgoing/trusted-authorities.ts";
import { RelayControlConnection } from "../relay-client/control-connection.ts";
import type { RejectionError } from "../rejection-error.ts";
import type { OnConnection } from "./connection-report.ts";
import { DataConnections } from "./data-connections.ts";
import { readEarlyBytes } from "./early-bytes.ts";
import { encodeProxyHeader, type ProxyProtocol } from "./proxy-protocol.ts";
import type { LocalTcpServer } from "./local-tcp-server.ts";

interface RelayStreamsOptions {
  server: LocalTcpServer;
  proxyProtocol: ProxyProtocol | undefined;
  authorities: TrustedAuthorities | undefined;
  /** Asks the API for a ticket of this tunnel. */
  getAccess(signal: AbortSignal, unusablePort?: number): Promise<RelayAccess>;
  /** Visitors can connect: called the first time, and after each reconnect. */
  onConnected(access: RelayAccess): void;
  onDisconnected(reason: string, code: number): void;
  onRetrying(reason: string, inMs: number, code: number | undefined): void;
  onRejected(rejection: RejectionError): void;
  onConnection: OnConnection;
}

export class RelayStreams {
  readonly #options: RelayStreamsOptions;
  readonly #control: RelayControlConnection;
  #connections: DataConnections | undefined;
  readonly #sockets = new Set<Socket>();

  constructor(options: RelayStreamsOptions) {
    this.#options = options;
    this.#control = new RelayControlConnection({
      authorities: options.authorities,
      getAccess: (signal, unusablePort) => options.getAccess(signal, unusablePort),
    });
    this.#control.on("welcome", (welcome, access) => {
      if (welcome.kind === "tunnel") this.#serve(welcome, access);
    });
    this.#control.on("message", (message) => {
      if (message.type === "open") this.#connections?.open(message.count);
    });
    this.#control.on("disconnected", (reason, code) => {
      // Connections that were assigned to visitors do not depend on the control connection.
      this.#connections?.close();
      options.onDisconnected(reason, code);
    });
    this.#control.on("retrying", (reason, inMs, code) => options.onRetrying(reason, inMs, code));
    this.#control.on("rejected", (rejection) => {
      this.close();
      options.onRejected(rejection);
    });
    this.#control.start();
  }

  /** Resets visitors' connections and closes all others. */
  close(): void {
    this.#control.close();
    this.#connections?.close();
    for (const socket of this.#sockets) reset(socket);
  }

  #serve({ association, streamKey, pool }: TunnelWelcome, access: RelayAccess): void {
    const { authorities } = this.#options;
    this.#connections?.close();
    this.#connections = new DataConnections({
      endpoint: { url: access.relay.url, authorities, association, streamKey },
      idleCount: pool,
      onAssigned: (head, socket, unread) => this.#forward(head, socket, unread),
    });
    this.#options.onConnected(access);
  }

  #forward(head: VisitorHead, visitor: Socket, unread: Uint8Array): void {
    const { server, proxyProtocol } = this.#options;
    const startedAtMs = performance.now();
    this.#sockets.add(visitor);
    visitor.once("close", () => this.#sockets.delete(visitor));
    let splice: Splice | undefined;
    const finish = this.#options.onConnection(() => ({
      address: head.address,
      via: "relay",
      durationMs: Math.round(performance.now() - startedAtMs),
      bytesIn: splice?.bytesFromFirst ?? 0,
      bytesOut: splice?.bytesFromSecond ?? 0,
    }));
    const takeEarlyBytes = readEarlyBytes(visitor, unread);
    const leave = (): void => {
      cancelConnect();
      finish();
    };
    visitor.once("close", leave);
    const cancelConnect = server.connect((...[failure, local]) => {
      visitor.off("close", leave);
      if (failure) {
        reset(visitor);
        return finish(failure.message);
      }
      if (proxyProtocol !== undefined) local.write(encodeProxyHeader(proxyProtocol, head));
      const unreadFromFirst = takeEarlyBytes();
      splice = new Splice(visitor, local, { unreadFromFirst, onClose: () => finish() });
    });
  }
}
