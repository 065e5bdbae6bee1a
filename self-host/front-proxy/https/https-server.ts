/** HTTPS connections: TLS ends here, and the decrypted connection is served like a plain one. */
import { constants } from "node:crypto";
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import {
  createServer as createTlsServer,
  type SecureContext,
  type TlsOptions,
  type Server as TlsServer,
  type TLSSocket,
} from "node:tls";
import type { KeyPair } from "./certificate-files.ts";
import { HandshakePace } from "./handshake-pace.ts";

/** How long a handshake may take. It may have to wait until a certificate is issued, which takes some seconds. */
const HANDSHAKE_MAX_MS = 20_000;
/**
 * The options of all contexts. A client may not repeat the handshake (RFC 9113 section 9.2.1): Node.js reports that, but does
 * not end the connection.
 */
const CONTEXT_OPTIONS = {
  minVersion: "TLSv1.2",
  secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
} as const;

/** The name of HTTP/2 in the handshake (RFC 7301). */
export const HTTP2 = "h2";

export interface HttpsServerOptions {
  /** For connections that name no host, or one for which `findContext` finds none; undefined: these fail. */
  keyPair: KeyPair | undefined;
  /** Finds a certificate for a host. undefined: there is only that of `keyPair`. */
  findContext: ((serverName: string) => Promise<SecureContext | undefined>) | undefined;
  /** Counts a connection before anything is read from it. @returns a function that ends the count; undefined: refused. */
  admit: (connection: Socket) => (() => void) | undefined;
  /** Serves a connection after its handshake. */
  serve: (visitor: TLSSocket) => void;
  /** Options for the sockets, as for `net.createServer`. */
  socketOptions: object;
  handshakePace?: HandshakePace;
}

/** @returns whether the connection was counted, until it is closed; otherwise it is closed now. */
export function countOrClose(connection: Socket, admit: HttpsServerOptions["admit"]): boolean {
  const release = admit(connection);
  if (release) connection.once("close", release);
  else connection.destroy();
  return release !== undefined;
}

export class HttpsServer {
  /** Accepts connections. Those of the TLS server are its own events: it does not listen. */
  readonly tcp: Server;
  readonly #tls: TlsServer;

  constructor({
    keyPair,
    findContext,
    admit,
    serve,
    socketOptions,
    handshakePace = new HandshakePace(),
  }: HttpsServerOptions) {
    // A client that ends its side has left, before its handshake as well as later.
    const options = { ...socketOptions, allowHalfOpen: false };
    const SNICallback: TlsOptions["SNICallback"] =
      findContext &&
      ((serverName, handle) => {
        findContext(serverName).then((context) => handle(null, context), handle);
      });
    this.#tls = createTlsServer({
      ...options,
      ...keyPair,
      ...CONTEXT_OPTIONS,
      SNICallback,
      ALPNProtocols: [HTTP2, "http/1.1"],
      handshakeTimeout: HANDSHAKE_MAX_MS,
    });
    this.#tls.on("secureConnection", serve);
    // Scanners and clients that do not trust the certificate: nothing that an operator could change.
    this.#tls.on("tlsClientError", (_, visitor) => visitor.destroy());
    this.tcp = createTcpServer(options, (connection) => {
      if (!countOrClose(connection, admit)) return;
      handshakePace.schedule(connection, () => this.#tls.emit("connection", connection));
    });
  }

  /** For new connections. */
  replaceKeyPair(keyPair: KeyPair): void {
    this.#tls.setSecureContext({ ...keyPair, ...CONTEXT_OPTIONS });
  }
}
