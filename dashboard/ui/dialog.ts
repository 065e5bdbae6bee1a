/** A question in front of everything else: it stays until it is answered, or until what it asks for is done. */
import { button, h, type Child } from "./element.ts";
import { form, type FormOptions } from "./form.ts";
import { main } from "./view.ts";

export interface Question extends FormOptions {
  title: string;
  about: Child[];
}

export function ask({ title, about, ...options }: Question): void {
  const heading = h("h2", { id: "question" }, title);
  const answer = form({
    ...options,
    beside: [button("Cancel", () => dialog.close(), { class: "plain" })],
    async act(value) {
      await options.act(value);
      dialog.close();
    },
  });
  const dialog = h("dialog", { "aria-labelledby": heading.id }, heading, ...about, answer);
  dialog.addEventListener("close", () => dialog.remove());
  main.append(dialog);
  dialog.showModal();
}
