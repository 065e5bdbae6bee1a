/** Text in the cells of a terminal: its width, how it is cut and wrapped, and text of visitors that is safe to print. */
import { escapeControls } from "../../shared/text/escape-controls.ts";
import { decodeLetters } from "../../shared/text/percent-encoding.ts";

/** Characters that take two cells: East Asian Wide and Fullwidth (Unicode Annex #11). */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{16fe0}-\u{18d08}\u{1aff0}-\u{1b2fb}\u{20000}-\u{3fffd}]|\p{Emoji_Presentation}/u;
/** Characters that are drawn onto the one before. */
const COMBINING = /\p{Mn}|\p{Me}|\u200d|[\u1160-\u11ff]/u;
/** Text of which each character takes one cell. */
const PLAIN = /^[\x20-\x7e]*$/;
/** How much of a target is shown: more than any terminal has cells in a row. */
const TARGET_SHOWN_MAX_BYTES = 2_000;

/**
 * Counts the cells of a text. A terminal that joins several emoji into one draws fewer cells than this; none draws more.
 */
export function getWidth(text: string): number {
  if (PLAIN.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += getCharacterWidth(character);
  return width;
}

function getCharacterWidth(character: string): 0 | 1 | 2 {
  if (COMBINING.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

/** Cuts a text to at most `width` cells; a text that was cut ends with `…`. */
export function cutText(text: string, width: number): string {
  if (getWidth(text) <= width) return text;
  return width < 1 ? "" : `${takeCells(text, width - 1)}…`;
}

/** Cuts a text to its last `width` cells at most; a text that was cut begins with `…`. */
export function cutStart(text: string, width: number): string {
  if (getWidth(text) <= width) return text;
  if (width < 1) return "";
  const characters = [...splitCharacters(text)];
  while (getWidth(characters.join("")) > width - 1) characters.shift();
  return `…${characters.join("")}`;
}

/** @returns the longest beginning of the text that fits, without a part of a character. */
function takeCells(text: string, width: number): string {
  let taken = "";
  let room = width;
  for (const character of splitCharacters(text)) {
    room -= getWidth(character);
    if (room < 0) break;
    taken += character;
  }
  return taken;
}

let segmenter: Intl.Segmenter | undefined;

/** Splits a text into the characters that a person sees. */
function* splitCharacters(text: string): Generator<string> {
  if (PLAIN.test(text)) return yield* text;
  // Made when it is needed: that takes 10 ms, and most texts are plain.
  segmenter ??= new Intl.Segmenter();
  for (const { segment } of segmenter.segment(text)) yield segment;
}

/** Cuts or pads a text to exactly `width` cells. */
export function fitText(text: string, width: number): string {
  const cut = cutText(text, width);
  return cut + " ".repeat(width - getWidth(cut));
}

/** The same with the text on the right. */
export function fitRight(text: string, width: number): string {
  const cut = cutText(text, width);
  return " ".repeat(width - getWidth(cut)) + cut;
}

/** Breaks a text into lines at spaces, and words that are longer than a line anywhere. */
export function wrapText(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(" ")) {
    const longer = line === "" ? word : `${line} ${word}`;
    if (getWidth(longer) <= width) {
      line = longer;
      continue;
    }
    if (line !== "") lines.push(line);
    const parts = breakText(word, width);
    line = parts.pop() ?? "";
    lines.push(...parts);
  }
  return [...lines, line];
}

/** Breaks a text into lines that are full, such as a URL, which has no spaces. */
export function breakText(text: string, width: number): string[] {
  const lines: string[] = [];
  let rest = text;
  while (getWidth(rest) > width) {
    // A wide character does not fit into one cell, and is a line of its own that the terminal cuts.
    const line = takeCells(rest, width) || rest.slice(0, 1);
    lines.push(line);
    rest = rest.slice(line.length);
  }
  return [...lines, rest];
}

/**
 * Makes the target of a request readable: percent-encoded letters beyond ASCII are decoded, if they are printable.
 * @param target the target's bytes, each as one character.
 */
export function formatPath(target: string): string {
  const shown = cutTarget(target);
  const text = decodeUtf8(shown) ?? shown;
  return escapeControls(decodeLetters(text));
}

/**
 * Every redraw formats the visible targets, and a visitor may send 100 kB of one. The last character is left out if it
 * may be cut.
 */
function cutTarget(target: string): string {
  if (target.length <= TARGET_SHOWN_MAX_BYTES) return target;
  return target.slice(0, TARGET_SHOWN_MAX_BYTES).replace(/[\u00c0-\u00ff][\u0080-\u00bf]*$/, "");
}

/** @returns null when the bytes are not UTF-8. */
function decodeUtf8(bytes: string): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      Buffer.from(bytes, "latin1"),
    );
  } catch {
    return null;
  }
}
