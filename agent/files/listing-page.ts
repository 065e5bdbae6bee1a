/** The page that shows what a directory contains. */
import { escapeHtml } from "../../shared/text/escape-html.ts";
import type { Listing } from "./directory.ts";

/** @param path the names of the directories that lead here. */
export function buildListingPage(path: string[], { names, isCut }: Listing): string {
  const title = escapeHtml(`/${path.map((name) => `${name}/`).join("")}`);
  const parent = path.length === 0 ? [] : ['<li><a href="../">Parent directory</a></li>'];
  const links = names.map((entry) => {
    const href = `./${entry.split("/").map(encodeURIComponent).join("/")}`;
    return `<li><a href="${escapeHtml(href)}">${escapeHtml(entry)}</a></li>`;
  });
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
</head>
<body>
<main>
<h1>${title}</h1>
<ul>
${[...parent, ...links].join("\n")}
</ul>
${isCut ? `<p>Only ${names.length} entries are shown.</p>` : names.length === 0 ? "<p>This directory is empty.</p>" : ""}
</main>
</body>
</html>
`;
}
