/** Which header lines of a visitor's request are not the visitor's to say, nor anybody's to set. */

/** What the service tells itself. From outside it means nothing. */
const OWN_PREFIX = "underpass-";

/** Never passed on: they speak of one connection, or of a visitor's address that only we know. */
const NOT_PASSED: ReadonlySet<string> = new Set([
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
]);

/** The handshake's own lines: the agent makes its own handshake with the local server. */
export const SOCKET_HANDSHAKE: ReadonlySet<string> = new Set([
  "sec-websocket-key",
  "sec-websocket-version",
  "sec-websocket-extensions",
]);

/** @param name in lower case. */
export function isPassedOn(name: string): boolean {
  // Servers that fold `_` into `-` would read `x_forwarded_for` as ours.
  const plain = name.includes("_") ? name.replaceAll("_", "-") : name;
  return !NOT_PASSED.has(plain) && !plain.startsWith(OWN_PREFIX);
}

/** Frames the message, or names whom it is for: another value would make it another request. */
const FRAMING: ReadonlySet<string> = new Set(["host", "content-length", "sec-websocket-protocol"]);

/** Whether a traffic policy may set it. */
export function isSettable(name: string): boolean {
  const lowered = name.toLowerCase();
  const plain = lowered.replaceAll("_", "-");
  return isPassedOn(plain) && !SOCKET_HANDSHAKE.has(plain) && !FRAMING.has(plain);
}
