/** Explains errors of Node.js and of libraries, in a sentence that says what to do next. */
import { formatHostAndPort } from "../shared/hosts.ts";

/** The only sign that ws gives of a handshake that took longer than its option `handshakeTimeout`. */
export const HANDSHAKE_TIMEOUT_MESSAGE = "Opening handshake has timed out";

/** Fields that Node.js adds to the errors of sockets, name look-ups and files. */
interface SystemError extends Error {
  code?: string;
  /** The name whose look-up failed. */
  hostname?: string;
  address?: string;
  port?: number;
  /** The file whose operation failed. */
  path?: string;
}

/** The message of an error's innermost cause, which says what happened: "fetch failed" does not. */
export function explainError(error: unknown): string {
  const cause = findInnermostCause(error);
  if (!(cause instanceof Error)) return String(cause);
  return describeSystemError(cause) ?? describeHandshake(cause.message) ?? describeOther(cause);
}

/** Errors of JavaScript and of zod: this program, or an answer that it did not expect, causes them. */
const UNEXPECTED = new Set([
  "RangeError",
  "ReferenceError",
  "SyntaxError",
  "TypeError",
  "ZodError",
  "$ZodError",
]);

/** The agent's own errors are sentences for the user. Those of Node.js and of libraries have a code. */
function describeOther({ name, message, code }: SystemError): string {
  // Messages of OpenSSL end with a line break.
  const text = message.trim() || name;
  if (typeof code === "string") return `an unexpected error occurred: ${text} (${code})`;
  return UNEXPECTED.has(name) ? `an unexpected error occurred: ${text}` : text;
}

/** A host with several addresses fails with one error for each of them; the first one stands for all. */
function findInnermostCause(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const inner: unknown = error instanceof AggregateError ? error.errors[0] : error.cause;
  return inner instanceof Error ? findInnermostCause(inner) : error;
}

/** @param code the close code of a WebSocket that was closed without a reason. */
export function describeClose(code: number): string {
  // 1006: without a close frame (RFC 6455 §7.1.5).
  if (code === 1006) return "the connection was lost";
  return `the connection was closed by the server or a proxy on the way (close code ${code})`;
}

function describeSystemError(error: SystemError): string | undefined {
  const { path, code } = error;
  // The failed call names no path: the file was opened before.
  if (code === "EISDIR") return `${path ?? "the path"} is a directory; name a file`;
  return path === undefined ? describeNetworkError(error) : describeFileError(path, error);
}

function describeNetworkError({
  name,
  code,
  hostname,
  address,
  port,
}: SystemError): string | undefined {
  const peer = formatPeer(address, port);
  switch (code) {
    case "ECONNREFUSED":
      return `${peer} refuses connections; check the address, and that the server runs`;
    case "ENOTFOUND":
      return `the host ${hostname} does not exist; check the address`;
    case "EAI_AGAIN":
      return `the host ${hostname} can't be looked up; check this machine's network and DNS`;
    case "ENETUNREACH":
    case "EHOSTUNREACH":
    case "ENETDOWN":
      return `no route leads to ${peer}; check this machine's network`;
    case "ETIMEDOUT":
    case "UND_ERR_CONNECT_TIMEOUT":
    case "UND_ERR_HEADERS_TIMEOUT":
    case "UND_ERR_BODY_TIMEOUT":
      return `${peer} does not answer; check the address, the network and its firewall`;
    case "EADDRINUSE":
      return `${peer} is in use by another program; choose another port`;
    case "EADDRNOTAVAIL":
      return `this machine does not have the address ${peer}; choose another one`;
    case "EACCES":
    case "EPERM":
      return `this user may not use ${peer}; choose a port above 1023, or check the firewall`;
    case "ECONNRESET":
    case "EPIPE":
    case "UND_ERR_SOCKET":
      return "the connection was closed; check the address, and proxies and firewalls on the way";
    case "CERT_HAS_EXPIRED":
    case "CERT_NOT_YET_VALID":
      return "the server's certificate is not valid now; check this machine's clock, or renew the certificate";
    case "ERR_TLS_CERT_ALTNAME_INVALID":
      return "the server's certificate is for another host name; check the address";
    case "DEPTH_ZERO_SELF_SIGNED_CERT":
    case "SELF_SIGNED_CERT_IN_CHAIN":
    case "UNABLE_TO_GET_ISSUER_CERT":
    case "UNABLE_TO_GET_ISSUER_CERT_LOCALLY":
    case "UNABLE_TO_VERIFY_LEAF_SIGNATURE":
      return "the server's certificate is not trusted; pass its CA's certificate with --ca-file FILE";
    case "EPROTO":
    case "ERR_SSL_WRONG_VERSION_NUMBER":
    case "ERR_SSL_PACKET_LENGTH_TOO_LONG":
      return "the server does not speak TLS at this address; use http:// or another port";
    default:
      if (name !== "TimeoutError") return undefined;
      return "the server does not answer in time; check the address and the network";
  }
}

function describeFileError(path: string, { code }: SystemError): string | undefined {
  switch (code) {
    case "ENOENT":
      return `${path} does not exist; check the path`;
    case "EACCES":
    case "EPERM":
      return `this user may not use ${path}; change its permissions, or choose another file`;
    case "ENOTDIR":
      return `a part of ${path} is not a directory; check the path`;
    case "EEXIST":
      return `${path} exists already; delete it, or choose another file`;
    case "EROFS":
      return `${path} is on a file system that can't be written; choose another one`;
    case "ENOSPC":
      return `there is no space left for ${path}; free some on its disk`;
    default:
      return undefined;
  }
}

/** For an answer of a proxy or of another web server. @param expected what an Underpass server would have answered with. */
export function describeOtherAnswer(status: number, expected: string): string {
  if (status === 502 || status === 503 || status === 504)
    return `the server is not available now: it may be restarting (HTTP ${status})`;
  return `the server answered ${status} instead of ${expected}; check the address, and proxies on the way`;
}

/** The library for WebSockets has no codes for these. */
function describeHandshake(message: string): string | undefined {
  const [, status] = /^Unexpected server response: (\d+)$/.exec(message) ?? [];
  if (status !== undefined) return describeOtherAnswer(Number(status), "a WebSocket");
  if (message === HANDSHAKE_TIMEOUT_MESSAGE) {
    return "the server does not answer in time; check the address and the network";
  }
  if (/^Server sent (?:no|an invalid) subprotocol$/.test(message))
    return "the server is not an Underpass server; check the address, and proxies on the way";
  if (message === "bad port")
    return "this port is reserved for another protocol; check the address";
  return undefined;
}

function formatPeer(address: string | undefined, port: number | undefined): string {
  if (address === undefined) return "the server";
  return port === undefined ? address : formatHostAndPort(address, port);
}
