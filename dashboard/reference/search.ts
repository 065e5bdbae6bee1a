/** The search field of the reference: shows the operations, schemas and errors that contain every word. */

const field = document.querySelector<HTMLInputElement>("#search")!;
const count = document.querySelector<HTMLElement>("#found")!;
const sections = [...document.querySelectorAll<HTMLElement>("main > section")];

/** The articles, each with its text and the link that leads to it. */
const entries = [...document.querySelectorAll<HTMLElement>("article[id]")].map((article) => ({
  article,
  text: (article.textContent ?? "").toLowerCase(),
  link: document.querySelector<HTMLElement>(`nav li[data-for="${article.id}"]`),
}));

function search(): void {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let found = 0;
  for (const { article, text, link } of entries) {
    const isFound = words.every((word) => text.includes(word));
    article.hidden = !isFound;
    if (link) link.hidden = !isFound;
    if (isFound) found += 1;
  }
  for (const section of sections) {
    const articles = [...section.querySelectorAll<HTMLElement>("article[id]")];
    const isEmpty = articles.every((article) => article.hidden);
    section.hidden = words.length > 0 && isEmpty;
    const group = document.querySelector<HTMLElement>(`nav details[data-for="${section.id}"]`);
    if (!group) continue;
    group.hidden = section.hidden;
    if (words.length > 0) group.setAttribute("open", "");
  }
  count.textContent = words.length === 0 ? "" : `${found} found`;
}

field.addEventListener("input", () => {
  search();
  scrollTo(0, 0);
});
addEventListener("keydown", (event) => {
  const hasModifier = event.ctrlKey || event.metaKey || event.altKey;
  if (event.key !== "/" || hasModifier || event.target instanceof HTMLInputElement) return;
  event.preventDefault();
  field.focus();
});
// A link leads to an article that the search has hidden.
addEventListener("hashchange", () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!target?.closest("[hidden]")) return;
  field.value = "";
  search();
  target.scrollIntoView();
});
field.closest<HTMLElement>("[hidden]")?.removeAttribute("hidden");
search();
