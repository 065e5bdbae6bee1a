/** The page that shows what a directory contains. */
import { escapeHtml } from "../../shared/escape-html.ts";
import { LISTED_ENTRIES_MAX } from "./directory.ts";

/** @param path the names of the directories that lead here. @param entries names; those of directories end with a slash. */
export function buildListingPage(path: string[], entries: string[]): string {
  const title = escapeHtml(`/${path.map((name) => `${name}/`).join("")}`);
  const parent = path.length === 0 ? [] : ['<li><a href="../">Parent directory</a></li>'];
  const links = entries.map((entry) => {
    const href = `./${entry.split("/").map(encodeURIComponent).join("/")}`;
    return `<li><a href="${escapeHtml(href)}">${escapeHtml(entry)}</a></li>`;
  });
  const isCut = entries.length >= LISTED_ENTRIES_MAX;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>${title}</title>
</head>
<body>
<main>
<h1>${title}</h1>
<ul>
${[...parent, ...links].join("\n")}
</ul>
${entries.length === 0 ? "<p>This directory is empty.</p>" : ""}${isCut ? `<p>Only ${LISTED_ENTRIES_MAX} entries are shown.</p>` : ""}
</main>
</body>
</html>
`;
}
