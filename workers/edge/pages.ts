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
    message: "The service is restarting.",
  },
};

const GENERIC: Text = {
  title: "Something went wrong",
  message: "The request could not be handled.",
};

/** @param from headers of the refusal that carry over, such as `Retry-After`. */
export function errorPage(request: Request, code: ErrorCode, from?: Headers): Response {
  const status = STATUS_BY_CODE[code];
  const text = TEXTS[code] ?? GENERIC;
  const isPage = wantsHtml(request);
  const headers = new Headers({
    ...(isPage ? PAGE_HEADERS : { "content-type": "application/json" }),
    [ERROR_HEADER]: code,
    "cache-control": "no-store",
    vary: "accept",
  });
  const retryAfter = from?.get("retry-after");
  if (retryAfter) headers.set("retry-after", retryAfter);
  if (!isPage) {
    const body: ErrorBody = {
      error: code,
      message: [text.message, text.hint].filter(Boolean).join(" "),
    };
    return new Response(JSON.stringify(body), { status, headers });
  }
  return new Response(htmlPage(status, code, text), { status, headers });
}
