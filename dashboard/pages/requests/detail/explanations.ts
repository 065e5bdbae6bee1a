/** The meanings of statuses and error codes, and what to do about them. */
import type { RefusedBy } from "../../../../protocol/schemas/inspector/captures.ts";
import type { ErrorCode } from "../../../../protocol/errors.ts";

/** RFC 9110, and the others that servers send. */
const STATUS_TEXTS: Record<number, string> = {
  101: "Switching Protocols",
  200: "OK",
  201: "Created",
  202: "Accepted",
  203: "Non-Authoritative Information",
  204: "No Content",
  205: "Reset Content",
  206: "Partial Content",
  207: "Multi-Status",
  300: "Multiple Choices",
  301: "Moved Permanently",
  302: "Found",
  303: "See Other",
  304: "Not Modified",
  307: "Temporary Redirect",
  308: "Permanent Redirect",
  400: "Bad Request",
  401: "Unauthorized",
  402: "Payment Required",
  403: "Forbidden",
  404: "Not Found",
  405: "Method Not Allowed",
  406: "Not Acceptable",
  407: "Proxy Authentication Required",
  408: "Request Timeout",
  409: "Conflict",
  410: "Gone",
  411: "Length Required",
  412: "Precondition Failed",
  413: "Content Too Large",
  414: "URI Too Long",
  415: "Unsupported Media Type",
  416: "Range Not Satisfiable",
  417: "Expectation Failed",
  418: "I'm a teapot",
  421: "Misdirected Request",
  422: "Unprocessable Content",
  423: "Locked",
  424: "Failed Dependency",
  425: "Too Early",
  426: "Upgrade Required",
  428: "Precondition Required",
  429: "Too Many Requests",
  431: "Request Header Fields Too Large",
  451: "Unavailable For Legal Reasons",
  500: "Internal Server Error",
  501: "Not Implemented",
  502: "Bad Gateway",
  503: "Service Unavailable",
  504: "Gateway Timeout",
  505: "HTTP Version Not Supported",
  507: "Insufficient Storage",
  508: "Loop Detected",
  511: "Network Authentication Required",
};

/** `404 Not Found`. */
export function formatStatus(status: number): string {
  const text = STATUS_TEXTS[status];
  return text === undefined ? String(status) : `${status} ${text}`;
}

/** For requests that the local server did not answer completely. */
const ERROR_TEXTS: Partial<Record<ErrorCode, string>> = {
  agent_offline:
    "No agent was connected. Start it on the machine with the local server; visitors wait a few seconds for an agent that reconnects.",
  origin_unreachable:
    "The local server refused the connection. Start it, or check the port that the agent forwards to.",
  origin_failed:
    "The local server closed the connection without a complete, valid response. Its own log may say why.",
  origin_timeout: "The local server did not answer in time.",
  not_ready: "The tunnel was not ready yet.",
  unavailable: "Underpass could not handle the request at that moment.",
  maintenance: "The tunnel was in maintenance.",
  upgrade_required: "The tunnel has access rules that the organization's plan does not include.",
  unauthorized: "The visitor did not sign in.",
  forbidden: "The tunnel's access rules do not allow this request.",
  rate_limited: "There were more requests than the rate limit allows, or too many wrong passwords.",
  method_not_allowed: "Tunnels do not forward TRACE requests.",
  payload_too_large: "The request was too large.",
  invalid_request: "The request was not valid HTTP.",
};

/** For refused visitors. Other refusals have an error code of their own. */
const REFUSAL_TEXTS: Partial<Record<RefusedBy, string>> = {
  ip_allowlist: "The tunnel's IP allowlist does not include the visitor's address.",
  password: "The visitor did not enter the tunnel's password, or a wrong one.",
  sign_in: "The visitor did not sign in, or is not among those whom the sign-in allows.",
  deny: "A rule of the traffic policy denies this path.",
  jwt_validation: "The traffic policy does not accept the visitor's token, or there was none.",
  api_token: "The request has an access token of the API, which tunnels do not receive.",
};

export function explainError(code: ErrorCode, refusedBy: RefusedBy | null): string {
  const isRefusal = code === "unauthorized" || code === "forbidden";
  const refusal = isRefusal && refusedBy !== null ? REFUSAL_TEXTS[refusedBy] : undefined;
  return refusal ?? ERROR_TEXTS[code] ?? "The local server did not answer this request.";
}
