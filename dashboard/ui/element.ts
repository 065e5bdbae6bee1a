/** An element with its attributes and children in one expression. Text stays text: nothing here parses HTML. */
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

/** A button that does something else than to submit its form. */
export function button(label: string, act: () => void, attributes: Attributes = {}) {
  const element = h("button", { type: "button", ...attributes }, label);
  element.addEventListener("click", act);
  return element;
}

/** A moment as it is said where the reader is. */
export function time(instant: string): HTMLTimeElement {
  const words = new Date(instant).toLocaleString(undefined, {
    dateStyle: "medium",
    timeStyle: "short",
  });
  return h("time", { datetime: instant }, words);
}

/** Runs while an element says that it is busy, and can't be pressed a second time. */
export async function whileBusy(element: HTMLButtonElement, act: () => Promise<void>) {
  element.disabled = true;
  element.setAttribute("aria-busy", "true");
  try {
    await act();
  } finally {
    element.disabled = false;
    element.removeAttribute("aria-busy");
  }
}
