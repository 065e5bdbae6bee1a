/** What a person's screen shows, kept current in place; and text that may be shown on it. */
import { stripVTControlCharacters } from "node:util";

const REDRAW_MS = 100;

const paint = (code: number) => (text: string) => `\u001b[${code}m${text}\u001b[0m`;
export const bold = paint(1);
export const dim = paint(2);
export const red = paint(31);
export const green = paint(32);
export const yellow = paint(33);

export class Picture {
  readonly #lines: () => string[];
  #redraw: NodeJS.Timeout | undefined;

  constructor(lines: () => string[]) {
    this.#lines = lines;
    process.stdout.on("resize", () => this.draw());
  }

  /** At most one picture each `REDRAW_MS`: a thousand requests a second are no reason for more. */
  draw(): void {
    this.#redraw ??= setTimeout(() => {
      this.#redraw = undefined;
      this.#paint();
    }, REDRAW_MS);
  }

  /** The last one, and what is written below it. */
  end(text: string): void {
    clearTimeout(this.#redraw);
    this.#paint();
    process.stdout.write(`\n${text}\n`);
  }

  #paint(): void {
    const width = process.stdout.columns || 80;
    const shown = this.#lines().map((line) =>
      stripVTControlCharacters(line).length > width ? cut(line, width) : line,
    );
    process.stdout.write(`\u001b[H\u001b[2J${shown.join("\n")}\n`);
  }
}

/** A stranger's text must not move the cursor. */
export function harmless(text: string): string {
  return stripVTControlCharacters(text).replace(/[\u0000-\u001f\u007f-\u009f]/g, "");
}

/** Without colours: a cut must not leave one switched on. */
function cut(line: string, width: number): string {
  return `${stripVTControlCharacters(line).slice(0, width - 1)}…`;
}
