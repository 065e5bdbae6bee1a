/** The HTML error page. It loads no assets and runs no scripts. */
import { parseAccept } from "hono/utils/accept";
import { escapeHtml } from "../shared/text/escape-html.ts";

export interface PageText {
  title: string;
  /** For the visitor. */
  message: string;
  /** For the tunnel's owner, who is often the visitor. */
  hint?: string;
  /** A link to what the visitor can do about the error. */
  action?: { text: string; href: string };
  /** The URL at which the error code is described. */
  reference?: string;
}

/** @param apiOrigin the origin of the service's own pages. */
export function getErrorReference(apiOrigin: string, code: string): string {
  return `${apiOrigin}/docs#errors-${code}`;
}

export const PAGE_HEADERS = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'",
};

/** Whether the client prefers HTML to all else, as browsers do. */
export function wantsHtml(request: Request): boolean {
  const [preferred] = parseAccept(request.headers.get("accept") ?? "");
  return preferred?.type.toLowerCase() === "text/html" && preferred.q > 0;
}

export function renderHtmlPage(
  status: number,
  code: string,
  { title, message, hint, action, reference }: PageText,
): string {
  const advice =
    hint === undefined ? "" : `<p class="hint">${formatInlineCode(escapeHtml(hint))}</p>`;
  const link =
    action === undefined
      ? ""
      : `<p><a href="${escapeHtml(action.href)}">${escapeHtml(action.text)}</a></p>`;
  const codeText = `<code>${escapeHtml(code)}</code>`;
  const codeLink =
    reference === undefined ? codeText : `<a href="${escapeHtml(reference)}">${codeText}</a>`;
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
footer a { color: inherit }
footer { margin-top: 2rem; font-size: .85rem; opacity: .7 }
</style>
</head>
<body>
<main>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(message)}</p>
${advice}${link}
<footer>${status} ${codeLink} · Underpass</footer>
</main>
</body>
</html>
`;
}

/** Text in backquotes becomes `code` elements. */
export function formatInlineCode(escaped: string): string {
  return escaped.replace(/`([^`]+)`/g, "<code>$1</code>");
}
