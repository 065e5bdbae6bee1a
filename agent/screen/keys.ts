/** Keys that are pressed at a terminal in raw mode. */

/** The sequences of keys without a character, in both modes of terminals. */
const SEQUENCES: Readonly<Record<string, string>> = {
  "\u001b[A": "up",
  "\u001bOA": "up",
  "\u001b[B": "down",
  "\u001bOB": "down",
  "\u001b[C": "right",
  "\u001bOC": "right",
  "\u001b[D": "left",
  "\u001bOD": "left",
  "\u001b[Z": "shift-tab",
  "\t": "tab",
  "\u001b": "escape",
  "\r": "enter",
  "\n": "enter",
  "\u007f": "backspace",
  "\b": "backspace",
  "\u0003": "ctrl-c",
  "\u000c": "ctrl-l",
  "\u0015": "ctrl-u",
  "\u0017": "ctrl-w",
  "\u001a": "ctrl-z",
};
/** An escape sequence, or one character. */
const KEY = /\u001b[[O][0-9;?]*[ -/]*[@-~]|[^]/gu;

/** Parses one chunk of input. @returns characters, and names such as `up`; unknown sequences are left out. */
export function parseKeys(input: string): string[] {
  return (input.match(KEY) ?? []).flatMap((key) => {
    const name = SEQUENCES[key];
    if (name !== undefined) return [name];
    return /^[^\p{C}]$/u.test(key) ? [key] : [];
  });
}

/** @returns the text of a line after a key: a character is appended; backspace, Ctrl-W and Ctrl-U delete as a shell does. */
export function editLine(text: string, key: string): string {
  if (key === "backspace") return [...text].slice(0, -1).join("");
  if (key === "ctrl-w") return text.replace(/\S*\s*$/u, "");
  if (key === "ctrl-u") return "";
  return [...key].length === 1 ? text + key : text;
}
