/** A connection through the proxy of the environment, for protocols that begin with an HTTP upgrade. */
import { isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { getHost } from "./address.ts";
import { findProxy, openThroughProxy } from "./proxy.ts";
import type { TrustedAuthorities } from "./trusted-authorities.ts";

/**
 * @param server `ws:` or `wss:`, one that is reached through a proxy (`isProxied`).
 * @throws ProxyError when the proxy can't be used. A failed TLS handshake is an event of the socket.
 */
export async function openProxySocket(
  server: URL,
  authorities: TrustedAuthorities | undefined,
  signal?: AbortSignal,
): Promise<Socket> {
  const proxy = findProxy(server);
  if (!proxy) throw new Error(`no proxy leads to ${server.host}`);
  const socket = await openThroughProxy(proxy, server, authorities, signal);
  if (server.protocol !== "wss:") return socket;
  const host = getHost(server);
  return connectTls({
    socket,
    // The certificate is for this host, not for the proxy's.
    host,
    servername: findServerName(host),
    ...(authorities ? { secureContext: authorities.secureContext } : {}),
  });
}

/** Server Name Indication has no IP addresses (RFC 6066 §3). */
export function findServerName(host: string): string | undefined {
  return isIP(host) === 0 ? host : undefined;
}
