/** Which header lines of a visitor's request are not the visitor's to say, nor anybody's to set. */

/** Never passed on: they speak of one connection, or of a visitor's address that only we know. */
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
  /** What the edge tells a tunnel's object. Nobody behind it may learn to say the same. */
  "underpass-judged",
  /** What marks a replay. */
  "underpass-replay",
]);

/** The handshake's own lines: the agent makes its own handshake with the local server. */
export const SOCKET_HANDSHAKE: ReadonlySet<string> = new Set([
  "sec-websocket-key",
  "sec-websocket-version",
  "sec-websocket-extensions",
]);

/** @param name in lower case. */
export function isForwarded(name: string): boolean {
  // Servers that fold `_` into `-` would read `x_forwarded_for` as ours.
  const plain = name.includes("_") ? name.replaceAll("_", "-") : name;
  return !NOT_FORWARDED.has(plain);
}

/** Frames the message, or names whom it is for: another value would make it another request. */
const FRAMING: ReadonlySet<string> = new Set(["host", "content-length", "sec-websocket-protocol"]);

const OWN_PREFIX = "underpass-";

/** Whether a traffic policy may set it. */
export function isSettableByPolicy(name: string): boolean {
  const plain = name.toLowerCase().replaceAll("_", "-");
  const isElses = SOCKET_HANDSHAKE.has(plain) || FRAMING.has(plain);
  return isForwarded(plain) && !isElses && !plain.startsWith(OWN_PREFIX);
}
