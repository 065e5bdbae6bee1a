/** A port on this machine that leads to a TCP tunnel: each connection to it becomes one to the tunnel's local server. */
import { EventEmitter, once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { ClientWelcome } from "../../protocol/wire/frames.ts";
import { getErrorCode } from "../../shared/error-message.ts";
import { formatHostAndPort } from "../../shared/hosts.ts";
import { adoptSocket } from "../../sockets/socket-reader.ts";
import { reset, SPLICED_SERVER_OPTIONS } from "../../sockets/splice.ts";
import type { ServerAccess } from "../server-access.ts";
import { explainError } from "../error-message.ts";
import { SettingsError } from "../settings-error.ts";
import { getBackOffMs } from "../back-off.ts";
import { RejectionError } from "../rejection-error.ts";
import { ClientConnection, type ClientFailure } from "./client-connection.ts";
import type { ListenAddress } from "./listen-address.ts";

interface LocalPortOptions extends ServerAccess {
  /** A tunnel's id or name. */
  tunnel: string;
  listen: ListenAddress;
}

export interface LocalConnectionReport {
  /** The local program's address. */
  address: string;
  durationMs: number;
  /** Bytes from and to the local program. */
  bytesIn: number;
  bytesOut: number;
  /** Why the tunnel's local server was not reached, or the connection was lost. */
  problem?: string;
}

interface LocalPortEventMap {
  /** Local programs can connect. */
  ready: [local: { tunnelId: string | undefined; address: string; port: number }];
  connection: [connection: LocalConnectionReport];
  /** The tunnel can't be reached at the moment. */
  notice: [message: string];
  /** Permanent: the tunnel was deleted or has expired, or the token is not valid. */
  rejected: [rejection: RejectionError];
}

/** After one of these, no further connection can succeed. */
const PERMANENT_REASONS = new Set([
  "unauthorized",
  "tunnel_deleted",
  "tunnel_expired",
  "unsupported_version",
]);

const WAITING_FOR_PORT =
  "waiting for the tunnel, which determines the port to listen on; to choose a port, use --listen";

export class LocalPort extends EventEmitter<LocalPortEventMap> {
  readonly #options: LocalPortOptions;
  readonly #server: Server;
  readonly #connections = new Map<ClientConnection, Socket>();
  readonly #abort = new AbortController();

  constructor(options: LocalPortOptions) {
    super();
    this.#options = options;
    this.#server = createServer(SPLICED_SERVER_OPTIONS, (socket) =>
      this.#forward(adoptSocket(socket)),
    );
  }

  /**
   * Checks that the token may use the tunnel, and listens.
   * @throws SettingsError when the local address can't be used.
   */
  async start(): Promise<void> {
    const { listen } = this.#options;
    const welcome = await this.#findTunnel();
    if (this.#abort.signal.aborted) return;
    const port = listen.port ?? welcome?.localPort;
    if (port === undefined)
      throw new SettingsError(
        "the tunnel's local server has no port that this command could listen on; choose one, for example: --listen 127.0.0.1:5433",
      );
    try {
      this.#server.listen({ host: listen.host, port });
      await once(this.#server, "listening");
    } catch (error) {
      throw new SettingsError(describeListenError(error, listen.host, port));
    }
    // A connection that the system can't accept (EMFILE, ENFILE) must not end the agent. The error can repeat without a pause,
    // so only the first one is reported.
    this.#server
      .on("error", () => undefined)
      .once("error", (error) =>
        this.emit("notice", `a local connection was not accepted: ${explainError(error)}`),
      );
    const bound = (this.#server.address() as AddressInfo).port;
    const address = formatHostAndPort(listen.host, bound);
    this.emit("ready", { tunnelId: welcome?.tunnelId, address, port: bound });
  }

  /** Resets open connections. */
  close(): void {
    this.#abort.abort();
    this.#server.close();
    for (const stream of this.#connections.keys()) stream.close();
  }

  /** Without `--listen` the port comes from the tunnel, so this waits until the tunnel can be reached. */
  async #findTunnel(): Promise<ClientWelcome | null> {
    let lastMessage: string | undefined;
    for (let failures = 0; !this.#abort.signal.aborted; failures += 1) {
      const found = await this.#probe();
      if (!("message" in found)) return found;
      if (this.#abort.signal.aborted) return null;
      if (!found.canRetry) {
        // The protocol has one code for a tunnel that was deleted and one that never existed.
        const isMissing = found.reason === "tunnel_deleted";
        this.#reject(isMissing ? { ...found, reason: "not_found" } : found);
        return null;
      }
      if (this.#options.listen.port !== undefined) {
        this.emit("notice", found.message);
        return null;
      }
      if (found.message !== lastMessage)
        this.emit("notice", `${found.message}; ${WAITING_FOR_PORT}`);
      lastMessage = found.message;
      await delay(getBackOffMs(failures), undefined, { signal: this.#abort.signal }).catch(
        () => {},
      );
    }
    return null;
  }

  /** Opens a connection to the tunnel, and closes it at once. */
  #probe(): Promise<ClientWelcome | ClientFailure> {
    const { signal } = this.#abort;
    return new Promise((resolve) => {
      const close = (): void => stream.close();
      const stream: ClientConnection = new ClientConnection({
        ...this.#options,
        onWelcome: (welcome) => {
          resolve(welcome);
          return null;
        },
        onEnd: (failure) => {
          signal.removeEventListener("abort", close);
          resolve(failure ?? LOST);
        },
      });
      signal.addEventListener("abort", close);
    });
  }

  #forward(socket: Socket): void {
    const startedAtMs = performance.now();
    const address = socket.remoteAddress ?? "";
    socket.on("error", () => undefined);
    const stream: ClientConnection = new ClientConnection({
      ...this.#options,
      onWelcome: () => socket,
      onEnd: (failure) => {
        this.#connections.delete(stream);
        if (failure) reset(socket);
        this.emit("connection", {
          address,
          durationMs: Math.round(performance.now() - startedAtMs),
          bytesIn: stream.bytesToTunnel,
          bytesOut: stream.bytesFromTunnel,
          ...(failure ? { problem: failure.message } : {}),
        });
        if (failure && PERMANENT_REASONS.has(failure.reason ?? "")) this.#reject(failure);
      },
    });
    this.#connections.set(stream, socket);
  }

  #reject({ reason, message, subcode }: ClientFailure): void {
    if (this.#abort.signal.aborted) return;
    this.close();
    const { renewal, server } = this.#options;
    const details = { renewal, subcode, server: server.origin };
    this.emit("rejected", new RejectionError(reason ?? "rejected", message, details));
  }
}

const LOST: ClientFailure = {
  reason: undefined,
  message: "the connection was lost",
  canRetry: true,
};

function describeListenError(error: unknown, host: string, port: number): string {
  const address = formatHostAndPort(host, port);
  switch (getErrorCode(error)) {
    case "EADDRINUSE":
      return `${address} is in use; choose another address with --listen`;
    case "EADDRNOTAVAIL":
      return `this machine does not have the address ${host}; choose another one with --listen`;
    case "EACCES":
      return `this user may not listen on ${address}; choose a port above 1023 with --listen`;
    default:
      return `can't listen on ${address}: ${explainError(error)}`;
  }
}
