/** Serves a TCP tunnel at its relay: the control connection, data connections, and visitors' connections. */
import type { Socket } from "node:net";
import type { VisitorHead, TunnelWelcome } from "../../protocol/relay/control.ts";
import type { RelayAccess } from "../../protocol/schemas/networks.ts";
import { reset, Splice } from "../../sockets/splice.ts";
import { RelayControlConnection } from "../relay-client/control.ts";
import type { RejectionError } from "../tunnel-connection.ts";
import type { ConnectionReport } from "./connect-stream.ts";
import { DataConnections } from "./data-connections.ts";
import { encodeProxyHeader, type ProxyProtocol } from "./proxy-protocol.ts";
import { connectLocal, type TcpTarget } from "./tcp-target.ts";

export interface RelayStreamsOptions {
  target: TcpTarget;
  proxyProtocol: ProxyProtocol | undefined;
  /** Asks the API for a ticket of this tunnel. */
  getAccess(signal: AbortSignal): Promise<RelayAccess>;
  /** Visitors can connect: called the first time, and after each reconnect. */
  onConnected(port: number): void;
  onDisconnected(reason: string): void;
  onRetrying(reason: string, inMs: number): void;
  onRejected(rejection: RejectionError): void;
  onFinished(connection: ConnectionReport): void;
}

export class RelayStreams {
  readonly #options: RelayStreamsOptions;
  readonly #control: RelayControlConnection;
  #connections: DataConnections | undefined;
  readonly #sockets = new Set<Socket>();

  constructor(options: RelayStreamsOptions) {
    this.#options = options;
    this.#control = new RelayControlConnection({
      getAccess: (signal) => options.getAccess(signal),
    });
    this.#control.on("welcome", (welcome, access) => {
      if (welcome.kind === "tunnel") this.#serve(welcome, access);
    });
    this.#control.on("message", (message) => {
      if (message.type === "open") this.#connections?.open(message.count);
    });
    this.#control.on("disconnected", (reason) => {
      // Connections that were assigned to visitors do not depend on the control connection.
      this.#connections?.close();
      options.onDisconnected(reason);
    });
    this.#control.on("retrying", (reason, inMs) => options.onRetrying(reason, inMs));
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

  #serve({ association, streamKey, pool }: TunnelWelcome, { relay, port }: RelayAccess): void {
    this.#connections?.close();
    this.#connections = new DataConnections({
      endpoint: { url: relay.url, association, streamKey },
      pool,
      onAssigned: (head, socket, unread) => this.#forward(head, socket, unread),
    });
    this.#options.onConnected(port);
  }

  #forward(head: VisitorHead, visitor: Socket, unread: Uint8Array): void {
    const { target, proxyProtocol } = this.#options;
    const startedAtMs = performance.now();
    this.#sockets.add(visitor);
    visitor.once("close", () => this.#sockets.delete(visitor));
    const finish = (bytesIn: number, bytesOut: number, problem?: string): void =>
      this.#options.onFinished({
        address: head.address,
        via: "relay",
        durationMs: Math.round(performance.now() - startedAtMs),
        bytesIn,
        bytesOut,
        ...(problem === undefined ? {} : { problem }),
      });
    const local = connectLocal(target, (failure) => {
      if (failure) {
        reset(visitor);
        return finish(0, 0, failure.message);
      }
      if (proxyProtocol !== undefined) local.write(encodeProxyHeader(proxyProtocol, head));
      const splice: Splice = new Splice(visitor, local, {
        unreadFromFirst: unread,
        onClose: () => finish(splice.bytesFromFirst, splice.bytesFromSecond),
      });
    });
  }
}
