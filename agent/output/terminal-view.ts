/** A live view at a terminal, redrawn in place; and text that is safe to print on a terminal. */
import { stripVTControlCharacters } from "node:util";
import { paint } from "./colors.ts";

const REDRAW_MS = 100;
const CLEAR_SCREEN = "\u001b[H\u001b[2J";

export const bold = (text: string): string => paint("bold", text);
export const dim = (text: string): string => paint("dim", text);
export const red = (text: string): string => paint("red", text);
export const green = (text: string): string => paint("green", text);
export const yellow = (text: string): string => paint("yellow", text);

export class TerminalView {
  readonly #getLines: () => string[];
  #redraw: NodeJS.Timeout | undefined;

  constructor(getLines: () => string[]) {
    this.#getLines = getLines;
    process.stdout.on("resize", () => this.draw());
  }

  /** Redraws at most once per `REDRAW_MS`, however many requests a second there are. */
  draw(): void {
    this.#redraw ??= setTimeout(() => {
      this.#redraw = undefined;
      this.#paint();
    }, REDRAW_MS);
  }

  /** Draws for the last time, and prints `text` below. */
  end(text: string): void {
    clearTimeout(this.#redraw);
    this.#paint();
    process.stdout.write(`\n${text}\n`);
  }

  #paint(): void {
    const width = process.stdout.columns || 80;
    const lines = this.#getLines().map((line) =>
      stripVTControlCharacters(line).length > width ? cut(line, width) : line,
    );
    process.stdout.write(`${CLEAR_SCREEN}${lines.join("\n")}\n`);
  }
}

/** Removes control characters: text from elsewhere must not move the cursor. */
export function stripControl(text: string): string {
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]/g, "");
}

/** Removes the colours too: a cut could leave one switched on. */
function cut(line: string, width: number): string {
  return `${stripVTControlCharacters(line).slice(0, width - 1)}…`;
}
