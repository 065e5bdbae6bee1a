/** Bytes as text, and text as lines that a page can show a few of at a time. */

export interface DecodedText {
  text: string;
  /** The encoding that was used: the declared one, or UTF-8. */
  encoding: string;
  /** Declared by the sender, and unknown to the browser. */
  unknownCharset: string | null;
  /** Whether some bytes are not valid in the encoding. */
  hasInvalidBytes: boolean;
}

const CHARSET_MAX_CHARS = 40;

/** @param charset as the sender declared it. A byte order mark precedes it. */
export function decodeText(bytes: Uint8Array, charset: string | undefined): DecodedText {
  const declared = (charset ?? "").slice(0, CHARSET_MAX_CHARS).trim();
  const label = findByteOrderMark(bytes) ?? (declared === "" ? "utf-8" : declared);
  let decoder: TextDecoder;
  let unknownCharset: string | null = null;
  try {
    decoder = new TextDecoder(label);
  } catch {
    decoder = new TextDecoder();
    unknownCharset = declared;
  }
  const text = decoder.decode(bytes);
  return {
    text,
    encoding: decoder.encoding,
    unknownCharset,
    hasInvalidBytes: text.includes("\ufffd"),
  };
}

function findByteOrderMark(bytes: Uint8Array): string | null {
  const [first, second, third] = bytes;
  if (first === 0xef && second === 0xbb && third === 0xbf) return "utf-8";
  if (first === 0xfe && second === 0xff) return "utf-16be";
  if (first === 0xff && second === 0xfe) return "utf-16le";
  return null;
}

const SAMPLE_BYTES = 8 * 1024;
/** A text has few control characters, apart from tabs and line breaks. */
const CONTROL_SHARE_MAX = 0.02;

/** Whether bytes of an unknown type are text in UTF-8. */
export function looksLikeText(bytes: Uint8Array): boolean {
  const sample = bytes.subarray(0, SAMPLE_BYTES);
  // The sample may end within a character.
  const text = new TextDecoder().decode(sample, { stream: true });
  const bad = text.match(/[\0-\x08\x0e-\x1a\x1c-\x1f\ufffd]/g)?.length ?? 0;
  return !text.includes("\0") && bad <= text.length * CONTROL_SHARE_MAX;
}

/** A longer line is shown in pieces. */
const PIECE_MAX_CHARS = 2_000;
/** More pieces are not shown: they can be downloaded. */
export const PIECES_MAX = 100_000;

export interface TextPiece {
  /** Of the line that begins here; null for the rest of a long line. */
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

export function splitText(text: string): TextPieces {
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

/** Not between the two halves of a character outside of the basic plane. */
function findPieceEnd(text: string, start: number, lineEnd: number): number {
  const end = Math.min(start + PIECE_MAX_CHARS, lineEnd);
  const isHighSurrogate = end < lineEnd && /[\ud800-\udbff]/.test(text.charAt(end - 1));
  return isHighSurrogate ? end - 1 : end;
}
