/** One step of a page: a heading and what follows, with the focus where the next thing is to be done. */
import { h, type Child } from "./element.ts";

export const main = document.querySelector("main") ?? document.body;

export function showStep(title: string, ...content: Child[]): void {
  document.title = `${title} · Underpass`;
  const heading = h("h1", { tabindex: "-1" }, title);
  main.replaceChildren(brand(), h("div", { class: "card" }, heading, ...content));
  (main.querySelector<HTMLElement>("input, select") ?? heading).focus();
}

export function brand(): HTMLElement {
  return h("a", { class: "brand", href: "/" }, "Underpass");
}
