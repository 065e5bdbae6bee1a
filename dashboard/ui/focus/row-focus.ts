/**
 * Where the focus goes when the row of a list that has it is removed: to the next row, to the one before, or to the heading
 * of the list. Otherwise it would be lost, and a keyboard or a screen reader would start again at the top of the page.
 */
import { useLayoutEffect, useRef, type RefObject } from "react";
import { focusFirst, isFocusLost } from "./lost-focus.ts";

/** The row with which the user works: it has the focus, or opened the dialog that has it. */
let activeRow: HTMLElement | null = null;

/** React calls `activate` after these listeners, because its own are not on the document. */
for (const type of ["focusin", "pointerdown"]) {
  document.addEventListener(type, () => (activeRow = null), { capture: true });
}

interface RowFocusProps<Element extends HTMLElement> {
  ref: RefObject<Element | null>;
  onFocus: () => void;
  onPointerDown: () => void;
}

/** @returns properties of the row's element. React also reports to it the events of dialogs that its actions open. */
export function useRowFocus<Element extends HTMLElement>(): RowFocusProps<Element> {
  const ref = useRef<Element>(null);
  const activate = () => {
    activeRow = ref.current;
  };
  useLayoutEffect(() => {
    const row = ref.current;
    return () => {
      if (row !== null && row === activeRow) moveFocusFrom(row);
    };
  }, []);
  return { ref, onFocus: activate, onPointerDown: activate };
}

/** Called while the row is still in the page: its neighbors are found now, and one gets the focus when the row is gone. */
function moveFocusFrom(row: HTMLElement): void {
  activeRow = null;
  const rows = [...(row.parentElement?.children ?? [])];
  const position = rows.indexOf(row);
  const neighbors = [...rows.slice(position + 1), ...rows.slice(0, position).toReversed()];
  const list = row.closest("section");
  // An open dialog keeps the focus from everything outside of it, so this waits until the dialog has closed too.
  setTimeout(() => {
    if (!isFocusLost()) return;
    focusFirst([
      ...neighbors.map((each) => findControl(each)),
      list?.querySelector<HTMLElement>("h2"),
      document.querySelector<HTMLElement>("main h1"),
    ]);
  });
}

/** The first of the row's actions, or else the first link or button in it. */
function findControl(row: Element): HTMLElement | null {
  return (
    row.querySelector<HTMLElement>(".actions button:enabled") ??
    row.querySelector<HTMLElement>("a[href], button:enabled")
  );
}
