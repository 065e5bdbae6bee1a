/** A long text as lines, and long lines as pieces. A page shows a few pieces at a time. */

/** A longer line is shown in pieces. */
const PIECE_MAX_CHARS = 2_000;
/** Further pieces are not shown; the user can download the whole body. */
export const PIECES_MAX = 100_000;

interface TextPiece {
  /** The number of the line that begins here; null for the rest of a long line. */
  lineNumber: number | null;
  text: string;
}

/** The pieces of a text. Only their positions are in memory. */
export interface TextPieces {
  count: number;
  lineCount: number;
  /** Whether the text has more pieces than `PIECES_MAX`. */
  isCut: boolean;
  get(index: number): TextPiece;
}

export function splitIntoPieces(text: string): TextPieces {
  const starts: number[] = [];
  const ends: number[] = [];
  const lineNumbers: number[] = [];
  let line = 0;
  let at = 0;
  while (at <= text.length && starts.length < PIECES_MAX) {
    line += 1;
    const next = text.indexOf("\n", at);
    const lineEnd = next < 0 ? text.length : next;
    let start = at;
    do {
      const end = findPieceEnd(text, start, lineEnd);
      lineNumbers.push(start === at ? line : 0);
      starts.push(start);
      ends.push(end);
      start = end;
    } while (start < lineEnd && starts.length < PIECES_MAX);
    at = start < lineEnd ? start : lineEnd + 1;
  }
  return {
    count: starts.length,
    lineCount: line,
    isCut: at <= text.length,
    get(index) {
      const number = lineNumbers[index] ?? 0;
      const piece = text.slice(starts[index], ends[index]);
      return { lineNumber: number === 0 ? null : number, text: piece.replace(/\r$/, "") };
    },
  };
}

/** Never between the two surrogates of a character. */
function findPieceEnd(text: string, start: number, lineEnd: number): number {
  const end = Math.min(start + PIECE_MAX_CHARS, lineEnd);
  const isHighSurrogate = end < lineEnd && /[\ud800-\udbff]/.test(text.charAt(end - 1));
  return isHighSurrogate ? end - 1 : end;
}
