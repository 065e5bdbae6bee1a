/** One step of a page: a heading and its content. The first input has the focus, or else the heading. */
import { h, type Child } from "./element.ts";

export const main = document.querySelector("main") ?? document.body;

export function showStep(title: string, ...content: Child[]): void {
  document.title = `${title} · Underpass`;
  const heading = h("h1", { tabindex: "-1" }, title);
  main.replaceChildren(createBrand(), h("div", { class: "card" }, heading, ...content));
  (main.querySelector<HTMLElement>("input, select") ?? heading).focus();
}

export function createBrand(): HTMLElement {
  return h("a", { class: "brand", href: "/" }, "Underpass");
}
