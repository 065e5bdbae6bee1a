/** WebSockets to the API and to relays: with the agent's credentials, and through the proxy of the environment. */
import type { Agent } from "node:http";
import WebSocket, { type ClientOptions } from "ws";
import { HttpsProxyAgent } from "https-proxy-agent";
import { getProxyForUrl } from "proxy-from-env";
import { HELLO_TIMEOUT_MS } from "../protocol/limits.ts";

/** @param credentials the bearer token. */
export function openWebSocket(
  url: URL,
  subprotocol: string,
  credentials: string,
  options: ClientOptions,
): WebSocket {
  return new WebSocket(url.href, subprotocol, {
    agent: findProxyAgent(url),
    handshakeTimeout: HELLO_TIMEOUT_MS,
    perMessageDeflate: false,
    ...options,
    headers: { ...options.headers, authorization: `Bearer ${credentials}` },
  });
}

/** @param url `ws:` or `wss:`. @returns undefined when the environment names no proxy for it. */
export function findProxyAgent(url: URL): Agent | undefined {
  const proxy = getProxyForUrl(url.href.replace(/^ws/, "http"));
  return proxy === "" ? undefined : new HttpsProxyAgent(proxy);
}

/**
 * Masking (RFC 6455 §5.3) keeps a hostile page from writing chosen bytes past a proxy that does not know WebSockets. Where
 * no proxy can see the bytes, it only costs time: inside TLS, and within one machine.
 */
export function skipMasking(url: URL): Pick<ClientOptions, "generateMask"> {
  const isLoopback = url.hostname === "127.0.0.1" || url.hostname === "[::1]";
  return url.protocol === "wss:" || isLoopback ? { generateMask: (mask) => mask.fill(0) } : {};
}
