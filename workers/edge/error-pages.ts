/**
 * The error pages for visitors: HTML for browsers, JSON for programs, and the error code in a header for both.
 * They load no assets and run no scripts.
 */
import {
  ERROR_HEADER,
  REQUEST_ID_HEADER,
  STATUS_BY_CODE,
  type ErrorCode,
} from "../../protocol/errors.ts";
import type { ErrorBody } from "../../protocol/schemas/error-body.ts";
import { getRefusalMessage } from "../../access/refusal.ts";
import { LimitedLog } from "../../shared/log.ts";
import { getAuthority, parseHost, toRouteName } from "../../protocol/hosts.ts";
import { getPublicAddress, getServiceDomain } from "../../protocol/public-address.ts";
import type { Env } from "../env.ts";
import { setTransportSecurity } from "../transport-security.ts";
import {
  getErrorReference,
  renderHtmlPage,
  PAGE_HEADERS,
  wantsHtml,
  type PageText,
} from "../html-error-page.ts";

const TEXTS: Partial<Record<ErrorCode, PageText>> = {
  invalid_host: {
    title: "Invalid host",
    message: "The request's Host header is not a valid host name.",
  },
  tunnel_not_found: {
    title: "No tunnel here",
    message: "No tunnel uses this address.",
    hint: "Check the address for typing errors, or start a tunnel with `underpass http 3000`.",
  },
  agent_offline: {
    title: "The tunnel is offline",
    message: "This tunnel exists, but its agent is not connected right now.",
    hint: "Start the agent with the name of this tunnel, on the machine with the local server: `underpass http 3000 --subdomain NAME`.",
  },
  origin_unreachable: {
    title: "The local server does not respond",
    message: "The tunnel is connected, but the server behind it refuses connections.",
    hint: "Start the local server, or check the port that you gave to `underpass http`. The agent needs no restart.",
  },
  origin_failed: {
    title: "The local server failed",
    message: "The server behind this tunnel sent no valid response.",
    hint: "The agent prints the reason: check its output, then the log of the local server.",
  },
  origin_timeout: {
    title: "The local server takes too long",
    message: "The server behind this tunnel did not respond in time.",
    hint: "Check the log of the local server.",
  },
  unavailable: {
    title: "Temporarily unavailable",
    message: "This request could not be handled right now. Try again in a moment.",
  },
  maintenance: {
    title: "Down for maintenance",
    message: "This tunnel is temporarily closed by its owner.",
  },
  upgrade_required: {
    title: "Tunnel closed",
    message: "This tunnel uses access rules that its owner's plan no longer includes.",
    hint: "The owner can remove the tunnel's password or sign-in, or get a plan that includes it.",
  },
  method_not_allowed: {
    title: "Method not allowed",
    message:
      "Tunnels do not forward TRACE requests: their answers would show the request's headers.",
  },
  unauthorized: {
    title: "Not signed in",
    message: "You have to sign in to visit this tunnel.",
  },
  forbidden: {
    title: "Not allowed",
    message: "The owner of this tunnel does not allow access here.",
  },
  rate_limited: {
    title: "Too many requests",
    message: "This tunnel has received too many requests. Try again later.",
  },
};

const GENERIC: PageText = {
  title: "Something went wrong",
  message: "The request could not be handled.",
};

/** The headers of a refusal that are sent to the visitor. */
const FORWARDED_HEADERS = [
  "www-authenticate",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
  "ratelimit-policy",
];

/** A refusal by a tunnel's object. */
export interface TunnelRefusal {
  code: ErrorCode;
  response: Response;
}

export function createRefusalPage(
  request: Request,
  env: Env,
  { code, response: refusal }: TunnelRefusal,
  action?: PageText["action"],
): Response {
  const message = getRefusalMessage(refusal);
  const retryAfter = refusal.headers.get("retry-after");
  const page = createErrorPage(request, env, code, {
    // The hint belongs to the page's own message.
    ...(message === null ? {} : { message, hint: undefined }),
    ...(action ? { action } : {}),
    ...(retryAfter === null ? {} : { retryAfterSeconds: Number(retryAfter) }),
    requestId: refusal.headers.get(REQUEST_ID_HEADER),
  });
  for (const name of FORWARDED_HEADERS) {
    const value = refusal.headers.get(name);
    if (value !== null) page.headers.set(name, value);
  }
  return page;
}

/** One for each isolate: its limit counts the pages of all visitors. */
const errorLog = new LimitedLog("info", "error_page");

/** For programs that send again, such as those of webhooks. */
const UNAVAILABLE_RETRY_AFTER_SECONDS = 2;

interface ErrorPageOptions extends Partial<Omit<PageText, "hint">> {
  /** undefined: no hint. */
  hint?: string | undefined;
  retryAfterSeconds?: number;
  /** The id that the tunnel's object has given to the request. */
  requestId?: string | null;
  /** Default: as the `Accept` header says. */
  format?: "html" | "json";
}

/** @param options texts that replace the default ones, and how the response is made. */
export function createErrorPage(
  request: Request,
  env: Env,
  code: ErrorCode,
  { requestId: givenId, format, ...options }: ErrorPageOptions = {},
): Response {
  const { retryAfterSeconds = getRetryAfterSeconds(code), ...texts } = options;
  const isHtml = format === undefined ? wantsHtml(request) : format === "html";
  const status = STATUS_BY_CODE[code];
  const requestId = givenId ?? crypto.randomUUID();
  errorLog.record({ requestId, code, status, method: request.method }, Date.now());
  const reference = getErrorReference(getPublicAddress(env).apiOrigin, code);
  const text = { ...(TEXTS[code] ?? GENERIC), reference, ...texts };
  const headers = new Headers({
    ...(isHtml ? PAGE_HEADERS : { "content-type": "application/json" }),
    [ERROR_HEADER]: code,
    [REQUEST_ID_HEADER]: requestId,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    vary: "accept",
  });
  if (retryAfterSeconds !== undefined) headers.set("retry-after", String(retryAfterSeconds));
  secureTransport(request, env, headers);
  if (!isHtml) {
    const body: ErrorBody = {
      error: code,
      message: [text.message, text.hint].filter(Boolean).join(" "),
    };
    if (retryAfterSeconds !== undefined) body.retry_after_seconds = retryAfterSeconds;
    return new Response(JSON.stringify(body), { status, headers });
  }
  return new Response(renderHtmlPage(status, code, text), { status, headers });
}

function getRetryAfterSeconds(code: ErrorCode): number | undefined {
  return code === "unavailable" ? UNAVAILABLE_RETRY_AFTER_SECONDS : undefined;
}

/** For answers of the edge. A custom domain belongs to a customer, who decides whether it needs TLS for a year. */
export function secureTransport(request: Request, env: Env, headers: Headers): void {
  const host = parseHost(getAuthority(request.url));
  if (host === null || toRouteName(host, getServiceDomain(env)) === host) return;
  setTransportSecurity(headers, getPublicAddress(env).scheme);
}
