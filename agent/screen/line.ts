/** Lines of a screen: pieces of text with a style each. */
import { cutText, getWidth } from "./text.ts";

const STYLES = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  inverse: [7, 27],
} as const;
export type Style = keyof typeof STYLES;

export interface Span {
  text: string;
  style?: Style;
  /** Where a click on the text leads. */
  link?: string;
}
export type Line = readonly Span[];

export interface Features {
  hasColors: boolean;
  /** Hyperlinks (OSC 8). */
  hasLinks: boolean;
}

/** Cuts a line to `width` cells. */
export function cutLine(line: Line, width: number): Line {
  const cut: Span[] = [];
  let room = width;
  for (const span of line) {
    const text = cutText(span.text, room);
    if (text !== "") cut.push({ ...span, text });
    room -= getWidth(span.text);
    if (room <= 0) break;
  }
  return cut;
}

export function getLineText(line: Line): string {
  return line.map(({ text }) => text).join("");
}

/** @returns the line with the escape sequences of its styles and links. */
export function formatLine(line: Line, { hasColors, hasLinks }: Features): string {
  return line
    .map(({ text, style, link }) => {
      const [on, off] = style === undefined ? [0, 0] : STYLES[style];
      const styled =
        style === undefined || !hasColors ? text : `\u001b[${on}m${text}\u001b[${off}m`;
      return link === undefined || !hasLinks
        ? styled
        : `\u001b]8;;${link}\u001b\\${styled}\u001b]8;;\u001b\\`;
    })
    .join("");
}
