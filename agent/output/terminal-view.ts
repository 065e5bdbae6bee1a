/** A live view of a few lines at a terminal, redrawn in place. */
import { stripVTControlCharacters } from "node:util";
import { getTerminalSize, stopProcess, TerminalScreen } from "../screen/terminal.ts";
import { cutText, getWidth } from "../screen/text.ts";

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
          ? // Without its colors: a cut could leave one switched on.
            cutText(stripVTControlCharacters(line), width)
          : line,
      );
  }
}
