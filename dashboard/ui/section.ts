/** A part of a page that loads its own content, and loads it again after each change. */
import { showDialog, type DialogOptions } from "./dialog.ts";
import { createButton, h, runWhileBusy, type Attributes, type Child } from "./element.ts";
import { getErrorMessage } from "../request.ts";

export interface Section {
  element: HTMLElement;
  /** Loads the content again. */
  reload: () => Promise<void>;
  /** Loads the content after a change, shows a message, and takes the focus, whose element may have been removed. */
  reloadAndFocus(message?: string): Promise<void>;
  /** Shows other content until the next reload. */
  showContent(...content: Child[]): void;
  /** A button that runs an action at once. */
  createButton(label: string, act: () => Promise<void>): HTMLButtonElement;
  /** A button that opens a dialog. After the action of the dialog the section is refreshed. */
  createDialogButton(
    label: string,
    options: DialogOptions,
    attributes?: Attributes,
  ): HTMLButtonElement;
}

let lastId = 0;

export function createSection(title: string, load: (self: Section) => Promise<Child[]>): Section {
  const id = `section-${(lastId += 1)}`;
  const heading = h("h2", { id, tabindex: "-1" }, title);
  const status = h("p", { role: "status" });
  const alert = h("p", { role: "alert" });
  const content = h("div", {}, h("p", { class: "hint" }, "Loading…"));
  const parts = [heading, status, alert, content];
  const element = h("section", { class: "card", "aria-labelledby": id }, ...parts);

  async function run(act: () => Promise<void>): Promise<void> {
    alert.textContent = "";
    status.textContent = "";
    await act().catch((error: unknown) => (alert.textContent = getErrorMessage(error)));
  }

  const self: Section = {
    element,
    async reload() {
      content.replaceChildren(...(await load(self)));
    },
    async reloadAndFocus(text = "") {
      await run(self.reload);
      status.textContent = text;
      heading.focus();
    },
    showContent(...children) {
      content.replaceChildren(...children);
      (content.querySelector<HTMLElement>("form input") ?? heading).focus();
    },
    createButton(label, act) {
      const pressed = createButton(label, () => void runWhileBusy(pressed, () => run(act)), {
        class: "plain",
      });
      return pressed;
    },
    createDialogButton(label, options, attributes = {}) {
      const act: DialogOptions["act"] = async (value) => {
        await options.act(value);
        // The action may have rendered the whole page again.
        if (element.isConnected) await self.reloadAndFocus();
      };
      return createButton(label, () => showDialog({ ...options, act }), {
        class: "plain",
        ...attributes,
      });
    },
  };
  void run(self.reload).then(() => {
    if (alert.textContent) content.replaceChildren(self.createButton("Try again", self.reload));
  });
  return self;
}

/** An entry of a list, with buttons for its actions. */
export interface Row {
  about: Child[];
  actions?: Child[];
}

export function createRows(items: Row[]): HTMLElement {
  const list = h("ul", { class: "rows" });
  for (const { about, actions = [] } of items) {
    const row = h("li", {}, h("div", { class: "about" }, ...about));
    if (actions.length > 0) row.append(h("div", { class: "actions" }, ...actions));
    list.append(row);
  }
  return list;
}

export function createBadge(text: string): HTMLElement {
  return h("span", { class: "badge" }, text);
}

/** A smaller line below the name of a row. */
export function createDetail(...content: Child[]): HTMLElement {
  return h("div", { class: "hint" }, ...content);
}
