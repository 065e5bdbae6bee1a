/** A path as tokens: single characters, and encoded ones with what they decode to. */

/** What a character means when segments are split. */
export const MEANING = { other: 0, slash: 1, backslash: 2, semicolon: 3, dot: 4 } as const;
export type Meaning = (typeof MEANING)[keyof typeof MEANING];

const MEANINGS: ReadonlyMap<string, Meaning> = new Map([
  ["/", MEANING.slash],
  ["\\", MEANING.backslash],
  [";", MEANING.semicolon],
  [".", MEANING.dot],
]);

/** Maps letters that differ only in case to the same ones: each code unit by itself, so that parts fold like the whole. */
export function foldCase(text: string): string {
  return text.replace(/[A-Z\u0080-\uffff]/g, (unit) => unit.toUpperCase().toLowerCase());
}

const FOLDED_ASCII = Array.from({ length: 0x80 }, (_, unit) => foldCase(String.fromCharCode(unit)));

/** Decodes once, as servers do, and folds the case. */
export function decodePath(path: string): string {
  return new PathText(path).decoded.join("");
}

/**
 * An encoded ASCII character, or encoded bytes that form other characters together, or a UTF-16 code unit in the notation that
 * HTTP.sys, the server of IIS, accepts by default.
 */
const ENCODED = /%[0-7][0-9a-f]|(?:%[89a-f][0-9a-f])+|%u[0-9a-f]{4}/iy;
const CODE_UNIT = /^%u/i;
const utf8 = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });

const ignore = () => undefined;

export class PathText {
  /** What each token means if servers decode it before they split segments. */
  readonly meanings: Meaning[] = [];
  readonly isEncoded: boolean[] = [];
  /** As they were sent, with folded case. */
  readonly sent: string[] = [];
  /** Decoded, with folded case. */
  readonly decoded: string[] = [];

  /** @param onToken called for each token, while the path is read. */
  constructor(path: string, onToken: (meaning: Meaning, isEncoded: boolean) => void = ignore) {
    for (let at = 0; at < path.length;) {
      const encoded = path[at] === "%" ? findEncoded(path, at) : undefined;
      if (encoded === undefined) this.#addPlain(path, at);
      else this.#addEncoded(encoded);
      at += encoded?.length ?? 1;
      onToken(this.meanings.at(-1)!, encoded !== undefined);
    }
  }

  #addPlain(path: string, at: number): void {
    const folded = FOLDED_ASCII[path.charCodeAt(at)] ?? foldCase(path[at]!);
    this.meanings.push(MEANINGS.get(folded) ?? MEANING.other);
    this.isEncoded.push(false);
    this.sent.push(folded);
    this.decoded.push(folded);
  }

  #addEncoded(encoded: string): void {
    const folded = foldCase(decode(encoded));
    this.meanings.push(MEANINGS.get(folded) ?? MEANING.other);
    this.isEncoded.push(true);
    this.sent.push(foldCase(encoded));
    this.decoded.push(folded);
  }
}

function findEncoded(path: string, at: number): string | undefined {
  ENCODED.lastIndex = at;
  return ENCODED.exec(path)?.[0];
}

function decode(encoded: string): string {
  if (CODE_UNIT.test(encoded)) return String.fromCharCode(parseInt(encoded.slice(2), 16));
  // A single byte above 0x7f is not valid UTF-8: servers that accept it read it as Latin-1.
  if (encoded.length === 3) return String.fromCharCode(parseInt(encoded.slice(1), 16));
  const bytes = Uint8Array.from(encoded.slice(1).split("%"), (hex) => parseInt(hex, 16));
  return utf8.decode(bytes);
}
