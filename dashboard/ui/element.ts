/** Creates elements with their attributes and children in one expression. Children are never parsed as HTML. */
export type Child = Node | string;
export type Attributes = Record<string, string | boolean>;

export function h<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "string") element.setAttribute(name, value);
    else element.toggleAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** A button that does not submit a form. */
export function createButton(label: string, act: () => void, attributes: Attributes = {}) {
  const element = h("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", act);
  return element;
}

/** A timestamp in the locale and time zone of the user. */
export function createTime(timestamp: string): HTMLTimeElement {
  const text = new Date(timestamp).toLocaleString(undefined, {
    dateStyle: "medium",
    timeStyle: "short",
  });
  return h("time", { datetime: timestamp }, text);
}

/** Disables a button, and marks it as busy, while an action runs. */
export async function runWhileBusy(element: HTMLButtonElement, act: () => Promise<void>) {
  element.disabled = true;
  element.setAttribute("aria-busy", "true");
  try {
    await act();
  } finally {
    element.disabled = false;
    element.removeAttribute("aria-busy");
  }
}
