/** A part of a page that has something of its own to show, and shows it anew after each change. */
import { ask, type Question } from "./dialog.ts";
import { button, h, whileBusy, type Attributes, type Child } from "./element.ts";
import { getErrorMessage } from "../request.ts";

export interface Section {
  element: HTMLElement;
  /** Asks again for what it shows. */
  reload: () => Promise<void>;
  /** The same after a change of its own: says so, and takes the focus, which may be on what is gone. */
  refresh(news?: string): Promise<void>;
  /** Shows something else until then. */
  replace(...content: Child[]): void;
  /** What needs no question. */
  button(label: string, act: () => Promise<void>): HTMLButtonElement;
  /** What is asked about first. The section is refreshed afterwards. */
  asking(label: string, question: Question, attributes?: Attributes): HTMLButtonElement;
}

let ids = 0;

export function section(title: string, load: (self: Section) => Promise<Child[]>): Section {
  const id = `section-${(ids += 1)}`;
  const heading = h("h2", { id, tabindex: "-1" }, title);
  const news = h("p", { role: "status" });
  const problem = h("p", { role: "alert" });
  const content = h("div", {}, h("p", { class: "hint" }, "Loading…"));
  const parts = [heading, news, problem, content];
  const element = h("section", { class: "card", "aria-labelledby": id }, ...parts);

  async function attempt(act: () => Promise<void>): Promise<void> {
    problem.textContent = "";
    news.textContent = "";
    await act().catch((error: unknown) => (problem.textContent = getErrorMessage(error)));
  }

  const self: Section = {
    element,
    async reload() {
      content.replaceChildren(...(await load(self)));
    },
    async refresh(text = "") {
      await attempt(self.reload);
      news.textContent = text;
      heading.focus();
    },
    replace(...children) {
      content.replaceChildren(...children);
      (content.querySelector<HTMLElement>("form input") ?? heading).focus();
    },
    button(label, act) {
      const pressed = button(label, () => void whileBusy(pressed, () => attempt(act)), {
        class: "plain",
      });
      return pressed;
    },
    asking(label, question, attributes = {}) {
      const act: Question["act"] = async (value) => {
        await question.act(value);
        // The whole page may have been shown anew meanwhile.
        if (element.isConnected) await self.refresh();
      };
      return button(label, () => ask({ ...question, act }), { class: "plain", ...attributes });
    },
  };
  void attempt(self.reload).then(() => {
    if (problem.textContent) content.replaceChildren(self.button("Try again", self.reload));
  });
  return self;
}

/** A thing in a list, and what can be done about it. */
export interface Row {
  about: Child[];
  actions?: Child[];
}

export function rows(items: Row[]): HTMLElement {
  const list = h("ul", { class: "rows" });
  for (const { about, actions = [] } of items) {
    const row = h("li", {}, h("div", { class: "about" }, ...about));
    if (actions.length > 0) row.append(h("div", { class: "actions" }, ...actions));
    list.append(row);
  }
  return list;
}

export function badge(text: string): HTMLElement {
  return h("span", { class: "badge" }, text);
}

/** Beneath what a row is about. */
export function detail(...content: Child[]): HTMLElement {
  return h("div", { class: "hint" }, ...content);
}
