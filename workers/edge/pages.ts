/**
 * What a visitor sees when no local server can answer: a small page for a person, JSON for a program, the
 * code of the failure in a header for both. No asset from elsewhere, no script.
 */
import {
  ERROR_HEADER,
  STATUS_BY_CODE,
  type ErrorBody,
  type ErrorCode,
} from "../../protocol/errors.ts";
import { htmlPage, PAGE_HEADERS, wantsHtml, type Text } from "../error-page.ts";

const TEXTS: Partial<Record<ErrorCode, Text>> = {
  invalid_host: {
    title: "That is no address",
    message: "The request's Host header is not a host name.",
  },
  tunnel_not_found: {
    title: "No tunnel here",
    message: "Nobody has a tunnel at this address.",
    hint: "Start one with `underpass http 3000`, or check the name for a typing error.",
  },
  agent_offline: {
    title: "The tunnel is offline",
    message: "This tunnel exists, and nothing is connected to it right now.",
    hint: "Start the agent on the machine with the local server: `underpass http 3000`.",
  },
  origin_unreachable: {
    title: "The local server does not answer",
    message: "The tunnel is connected, but the server behind it refuses connections.",
    hint: "Start the local server, or check the port that was given to `underpass http`. The agent needs no restart.",
  },
  origin_failed: {
    title: "The local server broke off",
    message: "The server behind this tunnel closed the connection without a valid answer.",
    hint: "Look at the local server's own log.",
  },
  origin_timeout: {
    title: "The local server takes too long",
    message: "The server behind this tunnel did not answer in time.",
  },
  unavailable: {
    title: "Back in a moment",
    message: "This can't be answered right now.",
  },
  maintenance: {
    title: "Down for maintenance",
    message: "This tunnel is closed for a while.",
  },
  upgrade_required: {
    title: "Closed for now",
    message: "What stands before this tunnel is not in its owner's plan any more.",
    hint: "The owner can upgrade the plan, or remove the tunnel's password or sign-in.",
  },
  unauthorized: {
    title: "Not signed in",
    message: "This tunnel wants to know who you are.",
  },
  forbidden: {
    title: "Not allowed",
    message: "The owner of this tunnel lets nobody in here.",
  },
  rate_limited: {
    title: "Too many requests",
    message: "This tunnel takes no more requests for now.",
  },
};

const GENERIC: Text = {
  title: "Something went wrong",
  message: "The request could not be handled.",
};

/** Header lines of a refusal that the visitor gets as well. */
const CARRIED = [
  "retry-after",
  "www-authenticate",
  "ratelimit-limit",
  "ratelimit-remaining",
  "ratelimit-reset",
  "ratelimit-policy",
];

/** @param refusal of a tunnel's object. Its body is a text for this visitor, or none. */
export async function refusalPage(
  request: Request,
  code: ErrorCode,
  refusal: Response,
  action?: Text["action"],
): Promise<Response> {
  const message = await refusal.text();
  const retryAfter = refusal.headers.get("retry-after");
  const page = errorPage(request, code, {
    ...(message === "" ? {} : { message }),
    ...(action ? { action } : {}),
    ...(retryAfter === null ? {} : { retryAfterSeconds: Number(retryAfter) }),
  });
  for (const name of CARRIED) {
    const value = refusal.headers.get(name);
    if (value !== null) page.headers.set(name, value);
  }
  return page;
}

interface Particulars extends Partial<Text> {
  retryAfterSeconds?: number;
}

/**
 * @param own instead of the text that is for everybody.
 * @param isPage otherwise JSON, whatever a program says that it takes.
 */
export function errorPage(
  request: Request,
  code: ErrorCode,
  { retryAfterSeconds, ...own }: Particulars = {},
  isPage = wantsHtml(request),
): Response {
  const status = STATUS_BY_CODE[code];
  const text = { ...(TEXTS[code] ?? GENERIC), ...own };
  const headers = new Headers({
    ...(isPage ? PAGE_HEADERS : { "content-type": "application/json" }),
    [ERROR_HEADER]: code,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    vary: "accept",
  });
  if (!isPage) {
    const body: ErrorBody = {
      error: code,
      message: [text.message, text.hint].filter(Boolean).join(" "),
    };
    if (retryAfterSeconds !== undefined) body.retry_after_seconds = retryAfterSeconds;
    return new Response(JSON.stringify(body), { status, headers });
  }
  return new Response(htmlPage(status, code, text), { status, headers });
}
