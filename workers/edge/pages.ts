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

interface Text {
  title: string;
  /** For the visitor. */
  message: string;
  /** For the owner, who is often the one who is looking. */
  hint?: string;
}

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
  const wantsHtml = request.headers.get("accept")?.includes("text/html") ?? false;
  const headers = new Headers({
    [ERROR_HEADER]: code,
    "cache-control": "no-store",
    "content-type": wantsHtml ? "text/html; charset=utf-8" : "application/json",
    vary: "accept",
  });
  const retryAfter = from?.get("retry-after");
  if (retryAfter) headers.set("retry-after", retryAfter);
  if (!wantsHtml) {
    const body: ErrorBody = {
      error: code,
      message: [text.message, text.hint].filter(Boolean).join(" "),
    };
    return new Response(JSON.stringify(body), { status, headers });
  }
  headers.set("content-security-policy", "default-src 'none'; style-src 'unsafe-inline'");
  return new Response(html(status, code, text), { status, headers });
}

function html(status: number, code: string, { title, message, hint }: Text): string {
  const advice = hint === undefined ? "" : `<p class="hint">${withCode(escapeHtml(hint))}</p>`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif }
main { max-width: 34rem; margin: 18vh auto 0; padding: 0 1.5rem }
h1 { font-size: 1.6rem; margin: 0 0 .5rem }
.hint { opacity: .8 }
code { background: #8883; border-radius: .25rem; padding: .1rem .3rem }
footer { margin-top: 2rem; font-size: .85rem; opacity: .7 }
</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(message)}</p>
${advice}
<footer>${status} <code>${escapeHtml(code)}</code> · Underpass</footer>
</main>
</body>
</html>
`;
}

function withCode(escaped: string): string {
  return escaped.replace(/`([^`]+)`/g, "<code>$1</code>");
}

export function escapeHtml(text: string): string {
  const entities: Record<string, string> = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    "'": "&#39;",
  };
  return text.replace(/[&<>"']/g, (character) => entities[character]!);
}
