/** A live view at a terminal, redrawn in place; and text that is safe to print on a terminal. */
import { stripVTControlCharacters } from "node:util";
import { getTerminalSize, stopProcess, TerminalScreen } from "../screen/terminal.ts";
import { cutText, getWidth } from "../screen/text.ts";
import { paint } from "./colors.ts";

export const bold = (text: string): string => paint("bold", text);
export const dim = (text: string): string => paint("dim", text);
export const red = (text: string): string => paint("red", text);
export const green = (text: string): string => paint("green", text);
export const yellow = (text: string): string => paint("yellow", text);

export class TerminalView {
  readonly #getLines: () => string[];
  readonly #screen: TerminalScreen;

  constructor(getLines: () => string[]) {
    this.#getLines = getLines;
    this.#screen = new TerminalScreen({
      getRows: (width) => this.#getRows(width),
      onKey: (key) => {
        if (key === "q") stopProcess();
      },
    });
  }

  /** Redraws soon, however many changes a second there are. */
  draw(): void {
    this.#screen.draw();
  }

  /** Draws for the last time, and prints `text` below. */
  end(text: string): void {
    this.#screen.end([...this.#getRows(getTerminalSize().width), ""]);
    process.stdout.write(`${text}\n`);
  }

  #getRows(width: number): string[] {
    return this.#getLines()
      .flatMap((lines) => lines.split("\n"))
      .map((line) =>
        getWidth(stripVTControlCharacters(line)) > width
          ? // Without its colours: a cut could leave one switched on.
            cutText(stripVTControlCharacters(line), width)
          : line,
      );
  }
}

/** Removes control characters: text from elsewhere must not move the cursor. */
export function stripControl(text: string): string {
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]/g, "");
}
