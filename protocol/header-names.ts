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
  /** The service gives each request an id of its own. */
  "underpass-request-id",
]);

/**
 * Some servers cut the value of such a header off the path, Gunicorn by default: with `SCRIPT_NAME: /x`, it reads `/x/admin` as
 * `/admin`, which a rule that denies `/admin` would not notice.
 */
const BASE_PATH_HEADERS = ["path-info", "script-name", "x-script-name"];

/**
 * With these, proxies of other networks say what this service says with `X-Forwarded-*`. A local server that also runs in
 * such a network would believe a visitor's. Here they say nothing, but a policy may set them.
 */
const FOREIGN_PROXY_HEADERS: ReadonlySet<string> = new Set([
  ...BASE_PATH_HEADERS,
  "cf-pseudo-ipv4",
  "client-ip",
  "cloudfront-viewer-address",
  "do-connecting-ip",
  "fastly-client-ip",
  "fly-client-ip",
  "forwarded-for",
  "front-end-https",
  "proxy-client-ip",
  "wl-proxy-client-ip",
  "x-appengine-user-ip",
  "x-azure-clientip",
  "x-azure-socketip",
  "x-cluster-client-ip",
  "x-envoy-external-address",
  "x-forwarded",
  "x-forwarded-prefix",
  "x-forwarded-protocol",
  "x-forwarded-scheme",
  "x-nf-client-connection-ip",
  "x-original-forwarded-for",
  "x-original-host",
  "x-scheme",
  "x-url-scheme",
  "x-vercel-forwarded-for",
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

const NOT_PLAIN = /[^a-z0-9-]/;
const ALL_NOT_PLAIN = /[^a-z0-9-]/g;

/**
 * Names with the same plain name are one header for many local servers: WSGI and CGI write `X-User`, `X_User` and, in some
 * servers, `X.User` as `HTTP_X_USER`, and join their values. So a header that is set or removed is compared by its plain name.
 *
 * @param name in lower case.
 */
export function toPlainName(name: string): string {
  return NOT_PLAIN.test(name) ? name.replace(ALL_NOT_PLAIN, "-") : name;
}

/** @param name in lower case. */
export function isForwarded(name: string): boolean {
  const plain = toPlainName(name);
  return !NOT_FORWARDED.has(plain) && !FOREIGN_PROXY_HEADERS.has(plain);
}

/** They delimit the message or name its recipient: another value would make it another request. */
const FRAMING: ReadonlySet<string> = new Set(["host", "content-length", "sec-websocket-protocol"]);

const OWN_PREFIX = "underpass-";

/** Whether a traffic policy may set the header. */
export function isSettableByPolicy(name: string): boolean {
  const plain = toPlainName(name.toLowerCase());
  const isProtocolHeader = WEBSOCKET_HANDSHAKE_HEADERS.has(plain) || FRAMING.has(plain);
  return !NOT_FORWARDED.has(plain) && !isProtocolHeader && !plain.startsWith(OWN_PREFIX);
}
