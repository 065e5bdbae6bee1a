/**
 * Tables for people: aligned, and at a terminal cut to its width. Piped, every value is complete. Rows are printed in parts,
 * so that a long list needs no memory for all of them.
 */
import { cutText, getWidth } from "../../screen/text.ts";
import { stripControl } from "./strip-control.ts";

const COLUMN_GAP = "  ";
/** A column is not cut to less than this. */
const COLUMN_MIN_CHARS = 6;

export interface Column {
  header: string;
  /** Numbers are easier to compare with their last digits below each other. */
  isRight?: boolean;
}

export class Table {
  readonly #columns: Column[];
  /** Columns at a terminal; undefined: nothing is cut. */
  readonly #maxWidth: number | undefined;
  /** They only grow, so that later parts stay aligned with earlier ones as far as possible. */
  readonly #widths: number[];
  #isStarted = false;

  constructor(columns: Column[], maxWidth: number | undefined) {
    this.#columns = columns;
    this.#maxWidth = maxWidth;
    this.#widths = columns.map(({ header }) => getWidth(header));
  }

  /** @returns the lines of these rows, the first time below the headers. Control characters are removed. */
  format(rows: string[][]): string[] {
    const cells = rows.map((row) => row.map(stripControl));
    for (const row of cells) {
      for (const [at, cell] of row.entries()) {
        this.#widths[at] = Math.max(this.#widths[at]!, getWidth(cell));
      }
    }
    const widths = this.#fitWidths();
    const headers = this.#isStarted ? [] : [this.#columns.map(({ header }) => header)];
    this.#isStarted = true;
    return [...headers, ...cells].map((row) => this.#formatRow(row, widths));
  }

  #formatRow(row: string[], widths: number[]): string {
    return row
      .map((cell, at) => {
        const width = widths[at]!;
        const text = cutText(cell, width);
        const padding = " ".repeat(width - getWidth(text));
        return this.#columns[at]?.isRight ? padding + text : text + padding;
      })
      .join(COLUMN_GAP)
      .trimEnd();
  }

  /** The widest column becomes narrower until the row fits. */
  #fitWidths(): number[] {
    const widths = [...this.#widths];
    if (this.#maxWidth === undefined) return widths;
    const gaps = COLUMN_GAP.length * (widths.length - 1);
    let excess = widths.reduce((sum, width) => sum + width, gaps) - this.#maxWidth;
    while (excess > 0) {
      const widest = Math.max(...widths);
      if (widest <= COLUMN_MIN_CHARS) break;
      widths[widths.indexOf(widest)] = widest - 1;
      excess -= 1;
    }
    return widths;
  }
}

/** @returns the width of standard output if it is a terminal; undefined: lines must not be cut. */
export function getTerminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns || 80 : undefined;
}
