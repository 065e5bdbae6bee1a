/** A modal dialog with a form. It closes when the user cancels it, or when the action of the form has succeeded. */
import { createButton, h, type Child } from "./element.ts";
import { createForm, type FormOptions } from "./form.ts";
import { main } from "./view.ts";

export interface DialogOptions extends FormOptions {
  title: string;
  about: Child[];
}

export function showDialog({ title, about, ...options }: DialogOptions): void {
  const heading = h("h2", { id: "dialog-title" }, title);
  const content = createForm({
    ...options,
    beside: [createButton("Cancel", () => dialog.close(), { class: "plain" })],
    async act(value) {
      await options.act(value);
      dialog.close();
    },
  });
  const dialog = h("dialog", { "aria-labelledby": heading.id }, heading, ...about, content);
  dialog.addEventListener("close", () => dialog.remove());
  main.append(dialog);
  dialog.showModal();
}
