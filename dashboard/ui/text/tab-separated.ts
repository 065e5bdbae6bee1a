/** Copies selected cells of a table as spreadsheets and scripts expect them: a line for each row, tabs between cells. */
import type { ClipboardEvent } from "react";

/** Buttons, and text for screen readers only. */
const NOT_COPIED = "button, .hidden-text";

/** Cells whose content has several lines would break the rows that the browser copies by itself. */
export function copyAsTabSeparated(event: ClipboardEvent<HTMLTableElement>): void {
  const selection = getSelection();
  if (selection === null) return;
  const rows = Array.from(event.currentTarget.rows, (row) =>
    Array.from(row.cells).filter((cell) => selection.containsNode(cell, true)),
  ).filter((cells) => cells.length > 0);
  // Within one cell, the browser copies exactly the selected text.
  if (rows.flat().length < 2) return;
  const lines = rows.map((cells) => cells.map(readCell).join("\t").trimEnd());
  event.clipboardData.setData("text/plain", lines.join("\n"));
  event.preventDefault();
}

function readCell(cell: HTMLTableCellElement): string {
  const texts: string[] = [];
  const nodes = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
  for (let node = nodes.nextNode(); node !== null; node = nodes.nextNode()) {
    if (node.parentElement?.closest(NOT_COPIED) === null) texts.push(node.textContent ?? "");
  }
  return texts
    .map((text) => text.trim())
    .filter((text) => text !== "")
    .join(" ")
    .replaceAll(/\s+/g, " ");
}
