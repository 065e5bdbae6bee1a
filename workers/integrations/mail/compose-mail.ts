/** The form of all mails: a plain and an HTML part with the same text. */
import { escapeHtml } from "../../../shared/text/escape-html.ts";

export interface Mail {
  to: string;
  subject: string;
  text: string;
  html: string;
}

/** A code to copy, or a link to follow. */
type Highlight = { code: string } | { label: string; url: string };

/** @param highlight appears after the first paragraph. Its URL is built from `config.publicOrigin`, never from a request. */
export function composeMail(
  to: string,
  subject: string,
  paragraphs: string[],
  highlight?: Highlight,
): Mail {
  const [first = "", ...rest] = paragraphs;
  const shown = highlight && formatPlainHighlight(highlight);
  const text = [first, ...(shown ? [shown] : []), ...rest].join("\n\n");
  const paragraph = (content: string) => `<p style="margin:0 0 16px">${escapeHtml(content)}</p>`;
  const html = [
    paragraph(first),
    ...(highlight ? [formatHtmlHighlight(highlight)] : []),
    ...rest.map(paragraph),
  ].join("\n");
  return { to, subject, text: `${text}\n`, html: renderPage(subject, html) };
}

/** Sets no colors: a mail client in dark mode sets all of them, so none clash. */
function renderPage(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
</head>
<body style="margin:0;padding:24px">
<div style="max-width:560px;font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif">
${body}
</div>
</body>
</html>
`;
}

function formatPlainHighlight(highlight: Highlight): string {
  return "code" in highlight ? `    ${highlight.code}` : `${highlight.label}:\n${highlight.url}`;
}

/** The text of the link is its URL, so that readers see where it leads. */
function formatHtmlHighlight(highlight: Highlight): string {
  if ("code" in highlight) {
    const style =
      "margin:0 0 16px;font:700 32px/1.25 ui-monospace,Menlo,Consolas,monospace;user-select:all";
    return `<p style="${style}">${escapeHtml(highlight.code)}</p>`;
  }
  const url = escapeHtml(highlight.url);
  return `<p style="margin:0 0 16px"><strong>${escapeHtml(highlight.label)}:</strong><br><a href="${url}" style="word-break:break-all">${url}</a></p>`;
}
