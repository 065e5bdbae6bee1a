/**
 * A screen in the terminal, which is redrawn in place. It uses the visible rows and not the alternate screen, so that the last
 * state stays above the prompt when the command ends; the rows above it move into the scrollback.
 */
import { stripVTControlCharacters } from "node:util";
import { getWidth } from "./text.ts";
import { isInForeground } from "./job-control.ts";
import { parseKeys } from "./keys.ts";

/** How often a job in the background checks whether it is in the foreground again: `fg` sends no signal to a job that runs. */
const FOREGROUND_CHECK_MS = 500;
/** At most 20 times a second, however many requests there are. */
const REDRAW_MS = 50;
const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
/** A text that is wider than this program knows is cut, instead of moving all lines below. */
const DISABLE_WRAP = "\u001b[?7l";
const ENABLE_WRAP = "\u001b[?7h";
/** The terminal shows everything in between at once. */
const BEGIN_UPDATE = "\u001b[?2026h";
const END_UPDATE = "\u001b[?2026l";
const ERASE_TO_END_OF_LINE = "\u001b[K";
const ERASE_BELOW = "\u001b[J";

const moveTo = (row: number): string => `\u001b[${row};1H`;

interface ScreenContents {
  /** @returns one text for each row, with escape sequences for styles only. */
  getRows(width: number, height: number): string[];
  /** Called for each key that the screen does not handle. */
  onKey?(key: string): void;
}

/** Whether a person is at a terminal that can be redrawn. Screen readers, logs and jobs in the background get lines instead. */
export function canShowScreen(): boolean {
  const { TERM, CI } = process.env;
  const isCi = CI !== undefined && CI !== "" && CI !== "false";
  return process.stdout.isTTY && TERM !== "dumb" && !isCi && isInForeground();
}

/** Some terminals report no size, or 0. */
export function getTerminalSize(): { width: number; height: number } {
  const { columns, rows } = process.stdout;
  return { width: columns || 80, height: rows || 24 };
}

export class TerminalScreen {
  readonly #contents: ScreenContents;
  readonly #hasKeys = process.stdin.isTTY;
  /** The rows as the terminal shows them. */
  #shown: string[] = [];
  #paintedAtMs = 0;
  #redraw: NodeJS.Timeout | undefined;
  #foregroundCheck: NodeJS.Timeout | undefined;
  #isActive = false;
  #isEnded = false;

  constructor(contents: ScreenContents) {
    this.#contents = contents;
    process.on("exit", this.#leave);
    process.stdout.on("resize", this.#resize);
    process.stdout.on("drain", this.#onDrain);
    if (this.#hasKeys) process.stdin.on("data", this.#onData);
    if (process.platform !== "win32") {
      process.on("SIGTSTP", this.#onStopSignal);
      process.on("SIGCONT", this.#enter);
    }
    this.#enter();
  }

  /** Draws soon: together with all changes until then. */
  draw(): void {
    if (this.#isEnded) return;
    const inMs = Math.max(0, this.#paintedAtMs + REDRAW_MS - performance.now());
    this.#redraw ??= setTimeout(() => {
      this.#redraw = undefined;
      this.#paint();
    }, inMs);
  }

  /** Sends a sequence that draws nothing, such as the one that fills the clipboard. */
  send(sequence: string): void {
    process.stdout.write(sequence);
  }

  /** Draws `rows` for the last time, unless the job is in the background, and restores the terminal. The cursor is below. */
  end(rows: string[]): void {
    if (this.#isEnded) return;
    clearTimeout(this.#redraw);
    clearTimeout(this.#foregroundCheck);
    if (this.#isActive) this.#showLastRows(rows);
    this.#leave();
    this.#isEnded = true;
    process.off("exit", this.#leave);
    process.stdout.off("resize", this.#resize);
    process.stdout.off("drain", this.#onDrain);
    process.stdin.off("data", this.#onData);
    process.off("SIGTSTP", this.#onStopSignal);
    process.off("SIGCONT", this.#enter);
  }

  #showLastRows(rows: string[]): void {
    const { height } = getTerminalSize();
    // Rows beyond the screen scroll out at its top, and are kept by the terminal.
    const text = rows.length < height ? "" : rows.slice(height - 1).join("\r\n");
    this.#shown = [];
    process.stdout.write(`${moveTo(1)}${ERASE_BELOW}`);
    this.#write(rows.slice(0, height - 1));
    if (text !== "") process.stdout.write(`${text}\r\n`);
  }

  readonly #enter = (): void => {
    if (this.#isEnded) return;
    clearTimeout(this.#foregroundCheck);
    if (!isInForeground()) {
      this.#foregroundCheck = setTimeout(this.#enter, FOREGROUND_CHECK_MS);
      return;
    }
    if (this.#hasKeys) process.stdin.setRawMode(true).resume();
    if (!this.#isActive) {
      // Moves what is visible into the scrollback.
      process.stdout.write("\n".repeat(getTerminalSize().height));
    }
    this.#isActive = true;
    process.stdout.write(HIDE_CURSOR);
    this.#resize();
  };

  readonly #leave = (): void => {
    if (!this.#isActive) return;
    this.#isActive = false;
    process.stdout.write(SHOW_CURSOR);
    if (this.#hasKeys) process.stdin.setRawMode(false).pause();
  };

  /** Terminals reflow lines each in their own way, so all rows are drawn again. */
  readonly #resize = (): void => {
    if (!this.#isActive) return;
    this.#shown = [];
    process.stdout.write(`${moveTo(1)}${ERASE_BELOW}`);
    this.draw();
  };

  readonly #onDrain = (): void => this.draw();

  readonly #onData = (data: Buffer): void => {
    for (const key of parseKeys(data.toString())) {
      if (key === "ctrl-c") stopProcess();
      // In raw mode, the terminal does not send the signals itself. Under npx all processes of the group must stop.
      else if (key === "ctrl-z" && process.platform !== "win32") this.#suspend(0, "SIGTSTP");
      else if (key === "ctrl-l") this.#resize();
      else this.#contents.onKey?.(key);
    }
  };

  readonly #onStopSignal = (): void => this.#suspend(process.pid, "SIGSTOP");

  #suspend(pid: number, signal: "SIGTSTP" | "SIGSTOP"): void {
    this.#leave();
    process.off("SIGTSTP", this.#onStopSignal);
    process.kill(pid, signal);
    // Runs after the process was continued; or at once, when it has no shell that could continue it.
    setImmediate(() => {
      process.on("SIGTSTP", this.#onStopSignal);
      this.#enter();
    });
  }

  #paint(): void {
    // A terminal that is slower than the changes gets the newest state when it has read the previous one.
    if (!this.#isActive || process.stdout.writableNeedDrain) return;
    this.#paintedAtMs = performance.now();
    const { width, height } = getTerminalSize();
    this.#write(this.#contents.getRows(width, height).slice(0, height));
  }

  /** Writes the rows that differ from those that are shown. */
  #write(rows: string[]): void {
    let changes = "";
    for (let at = 0; at < Math.max(rows.length, this.#shown.length); at += 1) {
      const [before, after] = [this.#shown[at] ?? "", rows[at] ?? ""];
      if (before === after) continue;
      const isShorter = getRowWidth(after) < getRowWidth(before);
      changes += `${moveTo(at + 1)}${after}${isShorter ? ERASE_TO_END_OF_LINE : ""}`;
    }
    this.#shown = rows;
    if (changes === "") return;
    // What another part of the process prints, such as the stack of a crash, begins below the screen.
    const below = moveTo(Math.min(rows.length + 1, getTerminalSize().height));
    process.stdout.write(
      `${BEGIN_UPDATE}${DISABLE_WRAP}${changes}${below}${ENABLE_WRAP}${END_UPDATE}`,
    );
  }
}

/** Does what Ctrl-C does: the first time the command ends cleanly, the second time at once. */
export function stopProcess(): void {
  if (!process.emit("SIGINT")) process.exit(130);
}

function getRowWidth(row: string): number {
  return getWidth(stripVTControlCharacters(row));
}
