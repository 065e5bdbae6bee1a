/**
 * Where the focus goes when the button that has it is removed, such as one that hides what it is in. Otherwise it would be
 * lost, and a keyboard or a screen reader would start again at the top of the page.
 */
const CONTROL = "a[href], button:enabled";

/** These return the focus to the element that opened them. */
const RETURNS_FOCUS = "[role=dialog], [role=alertdialog], [role=menu]";

export function isFocusLost(): boolean {
  return document.activeElement === null || document.activeElement === document.body;
}

/** Also if the element that has the focus has just been hidden, which browsers notice with the next frame. */
export function isFocusInvisible(): boolean {
  return isFocusLost() || document.activeElement?.checkVisibility() === false;
}

/** Gives the focus to the first of these elements that is in the page. A heading can have it too. */
export function focusFirst(targets: readonly (HTMLElement | null | undefined)[]): void {
  const target = targets.find((each) => each?.isConnected);
  if (!target) return;
  if (/^H\d$/.test(target.tagName)) target.tabIndex = -1;
  target.focus();
}

/** Called while the button is still in the page, and before the elements that replace it are. */
export function keepFocusNear(button: HTMLElement): void {
  if (button.closest(RETURNS_FOCUS)) return;
  const section = button.closest<HTMLElement>("section.card");
  const ancestors = getAncestors(button, section);
  setTimeout(() => {
    if (!isFocusLost()) return;
    const [container, position] = ancestors.find(([each]) => each.isConnected) ?? [];
    focusFirst([
      container && findControl(container, position ?? 0),
      section?.querySelector<HTMLElement>("h2"),
      document.querySelector<HTMLElement>("main h1"),
    ]);
  });
}

type Place = [container: HTMLElement, position: number];

/** The elements of the card that contain the button, the closest one first, and the position within each. */
function getAncestors(button: HTMLElement, section: HTMLElement | null): Place[] {
  const found: Place[] = [];
  if (section === null) return found;
  for (let child = button; child !== section && child.parentElement; child = child.parentElement) {
    found.push([child.parentElement, [...child.parentElement.children].indexOf(child)]);
  }
  return found;
}

/** The control at this position, or else the next one, or the one before. */
function findControl(container: HTMLElement, position: number): HTMLElement | undefined {
  const children = [...container.children];
  return [...children.slice(position), ...children.slice(0, position).toReversed()]
    .map((each) =>
      each.matches(CONTROL) ? (each as HTMLElement) : each.querySelector<HTMLElement>(CONTROL),
    )
    .find((control) => control !== null);
}
