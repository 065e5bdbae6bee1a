/** Why the local server did not answer a visitor, in a sentence for the user. */
import { RESET, type ResetCode } from "../../protocol/wire/frames.ts";
import { getErrorCode } from "../../shared/error-message.ts";
import { ORIGIN_HEADERS_MAX_BYTES } from "../limits.ts";
import { explainError, HANDSHAKE_TIMEOUT_MESSAGE } from "../error-message.ts";
import { explainSocketError } from "../local-server/unix-socket.ts";
import type { Target } from "./target.ts";

/** The connection could not be opened. */
const CONNECT_ERRORS = new Set([
  "EACCES",
  "EADDRNOTAVAIL",
  "EAGAIN",
  "EAI_AGAIN",
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOENT",
  "ENOTFOUND",
  "ETIMEDOUT",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** The server's certificate is not trusted, so nothing was sent. */
const CERTIFICATE_ERRORS = new Set([
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

const UNCHANGING_ERRORS = new Set([
  ...CERTIFICATE_ERRORS,
  ...["EACCES", "EAI_AGAIN", "ENOTFOUND"],
  ...["EPROTO", "ERR_SSL_PACKET_LENGTH_TOO_LONG", "ERR_SSL_WRONG_VERSION_NUMBER"],
]);

const CLOSED_CONNECTION_ERRORS = new Set(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET"]);

/** Whether the local server closed or reset the connection. @param error of a request that has no response. */
export function isClosedConnection({ code = "" }: NodeJS.ErrnoException): boolean {
  return CLOSED_CONNECTION_ERRORS.has(code);
}

/** Whether the local server may expect TLS, or speaks neither HTTP nor TLS. @param error of a request that has no response. */
export function mayExpectTls(error: NodeJS.ErrnoException): boolean {
  return isClosedConnection(error) || error.name === "HTTPParserError";
}

/** The server has not answered in time, or has stopped in its answer. */
const TIMEOUT_ERRORS = new Set(["UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT"]);

/**
 * How a stream without a response is reset.
 * @param error of undici, of ws, or of a socket. A host with several addresses has one for each of them.
 */
export function toResetCode(error: NodeJS.ErrnoException): ResetCode {
  if (error instanceof AggregateError || CONNECT_ERRORS.has(error.code ?? ""))
    return RESET.originUnreachable;
  return isTimeout(error) ? RESET.originTimeout : RESET.originFailed;
}

/** The status that the tunnel's answer to a reset has, for the agent's own report. */
export function toReportedStatus(code: ResetCode): number {
  return code === RESET.originTimeout ? 504 : 502;
}

function isTimeout({ code = "", name, message }: NodeJS.ErrnoException): boolean {
  // ws has no code for it.
  const isLateHandshake = message === HANDSHAKE_TIMEOUT_MESSAGE;
  return TIMEOUT_ERRORS.has(code) || name === "TimeoutError" || isLateHandshake;
}

/** Whether the local server has received nothing of the request. */
export function isUnsentError(error: unknown): boolean {
  if (error instanceof AggregateError) return isUnsentError(error.errors[0]);
  const code = getErrorCode(error) ?? "";
  return CONNECT_ERRORS.has(code) || CERTIFICATE_ERRORS.has(code);
}

/**
 * Why the local server accepts no connection now, for a tunnel that waits for it.
 *
 * @param error of a socket; null when it took too long. @param local the server, as it is printed.
 */
export function describeNotListening(error: NodeJS.ErrnoException | null, local: string): string {
  // Waiting does not help against a mistyped name, an untrusted certificate or missing permissions.
  if (error && UNCHANGING_ERRORS.has(error.code ?? ""))
    return describeOriginError(error, { origin: local });
  return `nothing is listening on ${local} yet; start the local server`;
}

/** @param error of undici, of ws, or of a socket. */
export function describeOriginError(
  error: NodeJS.ErrnoException,
  { origin }: Pick<Target, "origin">,
): string {
  // A host with several addresses fails with one error for each of them; the first one stands for all.
  if (error instanceof AggregateError && error.errors[0] instanceof Error)
    return describeOriginError(error.errors[0], { origin });
  const { code = "" } = error;
  if (CERTIFICATE_ERRORS.has(code))
    return `the certificate of ${origin} is not trusted (${code}); accept it with --insecure-upstream, or insecureUpstream in a program`;
  if (isTimeout(error)) return "the local server did not answer in time";
  const invalid = describeInvalidResponse(error, origin);
  if (invalid !== undefined) return invalid;
  const socketError = origin.startsWith("unix:") ? explainSocketError(code, origin) : undefined;
  if (socketError) return `${socketError.problem}; ${socketError.advice}`;
  switch (code) {
    case "ECONNREFUSED":
      return `nothing listens at ${origin}; start the local server, or name another port`;
    case "ECONNRESET":
    case "EPIPE":
    case "UND_ERR_SOCKET":
      return "the local server closed the connection before its response was complete";
    case "UND_ERR_HEADERS_OVERFLOW":
      return `the local server's response has more than ${ORIGIN_HEADERS_MAX_BYTES / 1024} KiB of headers`;
    case "UND_ERR_INVALID_ARG":
    case "ERR_UNESCAPED_CHARACTERS":
    case "ERR_INVALID_CHAR":
      return "the visitor's request is not valid HTTP, so it can't be forwarded";
    case "UND_ERR_DESTROYED":
    case "UND_ERR_CLOSED":
      return "the tunnel was closed";
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `the host of ${origin} is not known on this machine; check its name`;
    case "EADDRNOTAVAIL":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return `no route leads to ${origin}; check the address`;
    case "ETIMEDOUT":
    case "UND_ERR_CONNECT_TIMEOUT":
      return `${origin} does not accept the connection in time; check the address and its firewall`;
    case "UND_ERR_RES_CONTENT_LENGTH_MISMATCH":
      return "the local server sent fewer or more bytes than its Content-Length says";
    case "EPROTO":
    case "ERR_SSL_PACKET_LENGTH_TOO_LONG":
    case "ERR_SSL_WRONG_VERSION_NUMBER":
      return `${origin} does not speak TLS; use http:// in the local address`;
    default:
      return describeHandshake(error) ?? explainError(error);
  }
}

/** undici reports these as errors of its parser, as failed assertions, and as a closed connection. */
function describeInvalidResponse(
  { name, code = "", message }: NodeJS.ErrnoException,
  origin: string,
): string | undefined {
  if (message === "bad upgrade")
    return "the local server answered with status 101, but the request asked for no other protocol";
  const invalid = "the local server's response is not valid HTTP/1.1";
  if (code === "ERR_ASSERTION") return invalid;
  if (name !== "HTTPParserError") return undefined;
  const [, reason = ""] = /\(([^()]+)\)$/.exec(message) ?? [];
  // The first bytes are not those of HTTP. undici 7 knows the code, but does not set it.
  if (code === "HPE_INVALID_CONSTANT" || /^Expected HTTP/.test(reason))
    return `${origin} does not answer in HTTP/1.1; check the port, and whether it needs https://`;
  return reason === "" ? invalid : `${invalid}: ${reason}`;
}

/** The libraries have no codes for these. */
function describeHandshake({ name, message }: Error): string | undefined {
  if (name === "SyntaxError") return "the visitor's request is not a valid WebSocket handshake";
  if (/^(?:Invalid (?:Sec-WebSocket|Upgrade)|Server (?:sent|indicated) )/.test(message))
    return "the local server's answer is not a valid WebSocket handshake";
  return undefined;
}
