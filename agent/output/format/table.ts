/**
 * Tables for people: aligned, and at a terminal cut to its width. Piped, every value is complete. Rows are printed in parts,
 * so that a long list needs no memory for all of them.
 */
import { cutText, getWidth } from "../../screen/text.ts";
import { escapeControls } from "../../../shared/text/escape-controls.ts";

const COLUMN_GAP = "  ";
/** A column that had to be cut to less than this is left out. */
const COLUMN_MIN_CHARS = 6;

export interface Column {
  header: string;
  /** Aligned to the right: numbers are easier to compare with their last digits below each other. */
  isNumeric?: boolean;
  /** The column may be left out when the first rows do not fit the terminal; that with the lowest number goes first. */
  omissionOrder?: number;
  /** Cut only where these columns alone do not fit: for names that the user types again, and for numbers. */
  isCutLast?: boolean;
}

export class Table {
  #columns: readonly Column[];
  /** The index of each column in the rows. */
  #indexes: number[];
  /** Columns at a terminal; undefined: nothing is cut. */
  readonly #maxWidth: number | undefined;
  /** They only grow, so that later parts stay aligned with earlier ones as far as possible. */
  #widths: number[];
  #isStarted = false;

  constructor(columns: readonly Column[], maxWidth: number | undefined) {
    this.#columns = columns;
    this.#indexes = columns.map((_, at) => at);
    this.#maxWidth = maxWidth;
    this.#widths = columns.map(({ header }) => getWidth(header));
  }

  /** @returns the lines of these rows, the first time below the headers. Control characters are escaped. */
  format(rows: string[][]): string[] {
    const isFirst = !this.#isStarted;
    this.#isStarted = true;
    this.#growWidths(rows);
    if (isFirst) this.#omitColumns();
    const widths = this.#fitWidths();
    const headers = isFirst ? [this.#columns.map(({ header }) => header)] : [];
    return [...headers, ...this.#pickCells(rows)].map((row) => this.#formatRow(row, widths));
  }

  /** @returns the rows' values in the columns that are shown. */
  #pickCells(rows: string[][]): string[][] {
    return rows.map((row) => this.#indexes.map((at) => escapeControls(row[at]!)));
  }

  #growWidths(rows: string[][]): void {
    for (const row of this.#pickCells(rows))
      this.#widths = row.map((cell, at) => Math.max(this.#widths[at]!, getWidth(cell)));
  }

  #omitColumns(): void {
    while (this.#getExcess(this.#widths) > 0) {
      const orders = this.#columns.map(({ omissionOrder }) => omissionOrder ?? Infinity);
      const omitted = orders.indexOf(Math.min(...orders));
      if (orders[omitted] === Infinity) break;
      this.#omit(omitted);
    }
    // Columns that do not fit even when they are cut. The first one names what the row is about.
    while (this.#getExcess(this.#narrowCuttable()) > 0) {
      const widths = this.#columns.map(({ isCutLast }, at) =>
        isCutLast || at === 0 ? 0 : this.#widths[at]!,
      );
      const widest = Math.max(...widths);
      if (widest === 0) return;
      this.#omit(widths.indexOf(widest));
    }
  }

  #omit(omitted: number): void {
    this.#columns = this.#columns.toSpliced(omitted, 1);
    this.#indexes = this.#indexes.toSpliced(omitted, 1);
    this.#widths = this.#widths.toSpliced(omitted, 1);
  }

  /** By how much a row is wider than the terminal. */
  #getExcess(widths: number[]): number {
    if (this.#maxWidth === undefined) return 0;
    const gaps = COLUMN_GAP.length * (widths.length - 1);
    return widths.reduce((sum, width) => sum + width, gaps) - this.#maxWidth;
  }

  #formatRow(row: string[], widths: number[]): string {
    return row
      .map((cell, at) => {
        const width = widths[at]!;
        const text = cutText(cell, width);
        const padding = " ".repeat(width - getWidth(text));
        return this.#columns[at]?.isNumeric ? padding + text : text + padding;
      })
      .join(COLUMN_GAP)
      .trimEnd();
  }

  #fitWidths(): number[] {
    return this.#narrow(this.#narrowCuttable(), () => true);
  }

  #narrowCuttable(): number[] {
    return this.#narrow(this.#widths, (column) => !column.isCutLast);
  }

  /** The widest of these columns becomes narrower until the row fits. */
  #narrow(widths: readonly number[], isCuttable: (column: Column) => boolean): number[] {
    const narrowed = [...widths];
    while (this.#getExcess(narrowed) > 0) {
      const cuttable = narrowed.map((width, at) => (isCuttable(this.#columns[at]!) ? width : 0));
      const widest = Math.max(...cuttable);
      if (widest <= COLUMN_MIN_CHARS) break;
      narrowed[cuttable.indexOf(widest)] = widest - 1;
    }
    return narrowed;
  }
}

/** @returns the width of standard output if it is a terminal; undefined: lines must not be cut. */
export function getTerminalWidth(): number | undefined {
  return process.stdout.isTTY ? process.stdout.columns || 80 : undefined;
}
