/** Headers of a visitor's request that are not forwarded, and headers that a traffic policy can't set. */

/** They describe one connection, or the visitor's address, which only the service itself knows. */
const NOT_FORWARDED: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "expect",
  "forwarded",
  "x-forwarded-for",
  "x-forwarded-host",
  "x-forwarded-port",
  "x-forwarded-proto",
  "x-forwarded-server",
  "x-forwarded-ssl",
  "x-real-ip",
  "x-client-ip",
  "true-client-ip",
  "cf-connecting-ip",
  "cf-connecting-ipv6",
  "cf-visitor",
  /** From the edge to a tunnel's object. A local server must not see it, or it could be forged. */
  "underpass-judged",
  /** Marks a replay. */
  "underpass-replay",
]);

/**
 * Headers of a WebSocket handshake: the agent makes its own handshake with the local server. It has no body, and a local
 * server would take the first messages for one that `Content-Length` announces.
 */
export const WEBSOCKET_HANDSHAKE_HEADERS: ReadonlySet<string> = new Set([
  "sec-websocket-key",
  "sec-websocket-version",
  "sec-websocket-extensions",
  "content-length",
]);

/** @param name in lower case. */
export function isForwarded(name: string): boolean {
  // Servers that turn `_` into `-` would read `x_forwarded_for` as our header.
  const plain = name.includes("_") ? name.replaceAll("_", "-") : name;
  return !NOT_FORWARDED.has(plain);
}

/** They delimit the message or name its recipient: another value would make it another request. */
const FRAMING: ReadonlySet<string> = new Set(["host", "content-length", "sec-websocket-protocol"]);

const OWN_PREFIX = "underpass-";

/** Whether a traffic policy may set the header. */
export function isSettableByPolicy(name: string): boolean {
  const plain = name.toLowerCase().replaceAll("_", "-");
  const isProtocolHeader = WEBSOCKET_HANDSHAKE_HEADERS.has(plain) || FRAMING.has(plain);
  return isForwarded(plain) && !isProtocolHeader && !plain.startsWith(OWN_PREFIX);
}
