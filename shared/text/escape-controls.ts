/** Text of others that is printed at a terminal. */

/** Characters that a terminal or a reader could take for something else: controls, direction marks, separators. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/gu;
/** Joins emoji, and is harmless. */
const ZERO_WIDTH_JOINER = "\u200d";

/** Writes control characters as escapes (`\x1b`), so that a text from elsewhere can't control the terminal. */
export function escapeControls(text: string): string {
  return text.replace(UNSAFE, (character) => {
    if (character === ZERO_WIDTH_JOINER) return character;
    const code = character.codePointAt(0)!;
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
  });
}

/** The same for a text of several lines. */
export function escapeControlsInLines(text: string): string {
  return text.split("\n").map(escapeControls).join("\n");
}

/**
 * Escapes in a JSON text (`\u009b`) the characters that `JSON.stringify` leaves as they are: the value stays the same. The line
 * breaks of an indented text stay.
 */
export function escapeControlsInJson(json: string): string {
  return json.replace(UNSAFE, (character) => {
    if (character === "\n" || character === ZERO_WIDTH_JOINER) return character;
    return character.replace(/[^]/g, (unit) => {
      const code = unit.charCodeAt(0);
      return `\\u${code.toString(16).padStart(4, "0")}`;
    });
  });
}
