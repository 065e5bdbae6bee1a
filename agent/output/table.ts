/**
 * Tables for people: aligned, and at a terminal cut to its width. Piped, every value is complete. Rows are printed in parts,
 * so that a long list needs no memory for all of them.
 */
import { stripControl } from "./terminal-view.ts";

const COLUMN_GAP = "  ";
/** A column is not cut to less than this. */
const COLUMN_MIN_CHARS = 6;
/** Characters that terminals draw in two columns: emoji and East Asian ones (UAX #11, in blocks). */
const WIDE =
  /\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/u;
const ZERO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}]$/u;

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
    this.#widths = columns.map(({ header }) => measureText(header));
  }

  /** @returns the lines of these rows, the first time below the headers. Control characters are removed. */
  format(rows: string[][]): string[] {
    const cells = rows.map((row) => row.map(stripControl));
    for (const row of cells) {
      for (const [at, cell] of row.entries()) {
        this.#widths[at] = Math.max(this.#widths[at]!, measureText(cell));
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
        const padding = " ".repeat(width - measureText(text));
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

/** The columns that a terminal needs for a text without control characters. */
function measureText(text: string): number {
  let width = 0;
  for (const character of text) width += measureCharacter(character);
  return width;
}

function measureCharacter(character: string): number {
  if (character <= "\u02ff") return 1;
  if (ZERO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Replaces the end by `…` when the text is wider than `width`. */
export function cutText(text: string, width: number): string {
  if (measureText(text) <= width) return text;
  let cut = "";
  let used = 1;
  for (const character of text) {
    used += measureCharacter(character);
    if (used > width) break;
    cut += character;
  }
  return `${cut}…`;
}
