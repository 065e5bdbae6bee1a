/** WebSockets to the API and to relays: with the agent's credentials, and through the proxy of the environment. */
import type { ClientRequestArgs } from "node:http";
import type { createConnection } from "node:net";
import WebSocket, { type ClientOptions } from "ws";
import { HELLO_TIMEOUT_MS } from "../protocol/limits.ts";
import { isProxied } from "./outgoing/proxy.ts";
import { openProxySocket } from "./outgoing/proxy-socket.ts";
import type { TrustedAuthorities } from "./outgoing/trusted-authorities.ts";

interface WebSocketOptions extends ClientOptions {
  authorities: TrustedAuthorities | undefined;
}

/** @param path with its query. @returns the address of a WebSocket of the server: `wss:` if the server has `https:`. */
export function toWebSocketUrl(path: string, server: URL): URL {
  const url = new URL(path, server);
  url.protocol = server.protocol === "https:" ? "wss:" : "ws:";
  return url;
}

/** @param credentials the bearer token. */
export function openWebSocket(
  url: URL,
  subprotocol: string,
  credentials: string,
  { authorities, ...options }: WebSocketOptions,
): WebSocket {
  return new WebSocket(url.href, subprotocol, {
    ...(isProxied(url) && { createConnection: createProxyConnector(url, authorities) }),
    ...(authorities && { secureContext: authorities.secureContext }),
    handshakeTimeout: HELLO_TIMEOUT_MS,
    perMessageDeflate: false,
    ...options,
    headers: { ...options.headers, authorization: `Bearer ${credentials}` },
  });
}

/** For the option `createConnection` of Node.js's HTTP client, which ws passes on under another type. */
function createProxyConnector(
  url: URL,
  authorities: TrustedAuthorities | undefined,
): typeof createConnection {
  const connect: ClientRequestArgs["createConnection"] = (_, onCreated) => {
    openProxySocket(url, authorities).then(
      (socket) => onCreated(null, socket),
      (error: Error) => onCreated(error, undefined as never),
    );
    return undefined;
  };
  return connect as unknown as typeof createConnection;
}

/**
 * Masking (RFC 6455 §5.3) keeps a hostile page from writing chosen bytes past a proxy that does not know WebSockets. Where
 * no proxy can see the bytes, it only costs time: inside TLS, and within one machine.
 */
export function skipMasking(url: URL): Pick<ClientOptions, "generateMask"> {
  const isLoopback = url.hostname === "127.0.0.1" || url.hostname === "[::1]";
  return url.protocol === "wss:" || isLoopback ? { generateMask: (mask) => mask.fill(0) } : {};
}
