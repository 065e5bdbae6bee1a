/** HTTPS connections: TLS ends here. What a connection carries is served like that of a plain one. */
import { createServer as createTcpServer, type Server, type Socket } from "node:net";
import {
  createServer as createTlsServer,
  type SecureContext,
  type Server as TlsServer,
  type TLSSocket,
} from "node:tls";
import type { KeyPair } from "./certificate-files.ts";

/** How long a handshake may take. It may have to wait until a certificate is issued, which takes some seconds. */
const HANDSHAKE_MAX_MS = 20_000;

/** The name of HTTP/2 in the handshake (RFC 7301). */
export const HTTP2 = "h2";

export interface HttpsServerOptions {
  /** For connections for which `findContext` finds none, also those that name no host; undefined: these fail. */
  keyPair: KeyPair | undefined;
  /** Finds a certificate for a host. */
  findContext: (serverName: string) => Promise<SecureContext | undefined>;
  /** Counts a connection before anything is read from it. @returns a function that ends the count; undefined: refused. */
  admit: (connection: Socket) => (() => void) | undefined;
  /** Serves a connection after its handshake. */
  serve: (visitor: TLSSocket) => void;
  /** Of the sockets, as for `net.createServer`. */
  socketOptions: object;
}

export class HttpsServer {
  /** Accepts connections. Those of the TLS server are its own events: it does not listen. */
  readonly tcp: Server;
  readonly #tls: TlsServer;

  constructor({ keyPair, findContext, admit, serve, socketOptions }: HttpsServerOptions) {
    // A client that ends its side has left, also before the handshake.
    const options = { ...socketOptions, allowHalfOpen: false };
    this.#tls = createTlsServer({
      ...options,
      ...keyPair,
      SNICallback(serverName, handle) {
        findContext(serverName).then((context) => handle(null, context), handle);
      },
      minVersion: "TLSv1.2",
      ALPNProtocols: [HTTP2, "http/1.1"],
      handshakeTimeout: HANDSHAKE_MAX_MS,
    });
    this.#tls.on("secureConnection", serve);
    // Scanners and clients that do not trust the certificate: nothing that an operator could change.
    this.#tls.on("tlsClientError", (_, visitor) => visitor.destroy());
    this.tcp = createTcpServer(options, (connection) => {
      const release = admit(connection);
      if (!release) return void connection.destroy();
      connection.once("close", release);
      this.#tls.emit("connection", connection);
    });
  }

  /** For new connections. */
  replaceKeyPair(keyPair: KeyPair): void {
    this.#tls.setSecureContext({ ...keyPair, minVersion: "TLSv1.2" });
  }
}
