/** Checks a JSON text (RFC 8259), and finds where its containers begin and end. It does not recurse. */

/** By the number of a container, in the order in which they begin. */
export interface JsonStructure {
  /** The position of its opening bracket. */
  starts: number[];
  /** The position after its closing bracket. */
  ends: number[];
  /** The number of the first container that begins after it. */
  followers: number[];
}

export class JsonSyntaxError extends SyntaxError {
  /** In UTF-16 code units from the start of the text. */
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.offset = offset;
  }
}

/** UTF-16 code units: reading them takes a fraction of the time of reading characters. */
export const CODE = {
  quote: 0x22,
  comma: 0x2c,
  colon: 0x3a,
  arrayStart: 0x5b,
  backslash: 0x5c,
  arrayEnd: 0x5d,
  objectStart: 0x7b,
  objectEnd: 0x7d,
} as const;
/** Lower ones are control characters. */
const FIRST_PRINTABLE = 0x20;

const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
/** The characters after a backslash. */
const ESCAPE = /["\\/bfnrt]|u[\dA-Fa-f]{4}/y;

/**
 * Checks the text and finds its containers. One loop over the whole text, with as few calls as possible: most bodies are
 * checked before the browser has compiled this code.
 * @throws JsonSyntaxError
 */
export function parseStructure(text: string): JsonStructure {
  const structure: JsonStructure = { starts: [], ends: [], followers: [] };
  const { starts, ends, followers } = structure;
  /** The numbers of the containers around `at`, and of which kind the innermost one is. */
  const open: number[] = [];
  let isObject = false;
  let at = skipSpace(text, 0);
  for (;;) {
    if (isObject) at = skipKey(text, at);
    const first = text.charCodeAt(at);
    if (first === CODE.objectStart || first === CODE.arrayStart) {
      open.push(starts.length);
      starts.push(at);
      ends.push(0);
      followers.push(0);
      isObject = first === CODE.objectStart;
      at = skipSpace(text, at + 1);
      if (text.charCodeAt(at) !== getEnd(isObject)) continue;
    } else {
      at = first === CODE.quote ? findStringEnd(text, at) : findScalarEnd(text, at);
      at = skipSpace(text, at);
    }
    // After a value, or before the end of an empty container.
    while (open.length > 0 && text.charCodeAt(at) !== CODE.comma) {
      if (text.charCodeAt(at) !== getEnd(isObject)) {
        throw new JsonSyntaxError(`Expected "," or "${isObject ? "}" : "]"}"`, at);
      }
      const container = open.pop()!;
      ends[container] = at + 1;
      followers[container] = starts.length;
      const parent = open.at(-1);
      isObject = parent !== undefined && text.charCodeAt(starts[parent]!) === CODE.objectStart;
      at = skipSpace(text, at + 1);
    }
    if (open.length === 0) break;
    at = skipSpace(text, at + 1);
  }
  if (at < text.length) throw new JsonSyntaxError("Unexpected text after the value", at);
  return structure;
}

function getEnd(isObject: boolean): number {
  return isObject ? CODE.objectEnd : CODE.arrayEnd;
}

/** @returns the position of the value. */
function skipKey(text: string, start: number): number {
  if (text.charCodeAt(start) !== CODE.quote) {
    throw new JsonSyntaxError("A name must be in quotation marks", start);
  }
  const at = skipSpace(text, findStringEnd(text, start));
  if (text.charCodeAt(at) !== CODE.colon) throw new JsonSyntaxError('Expected ":"', at);
  return skipSpace(text, at + 1);
}

/** @param start the position of the opening quotation mark. @throws JsonSyntaxError */
export function findStringEnd(text: string, start: number): number {
  let at = start + 1;
  for (;;) {
    let code = text.charCodeAt(at);
    while (code >= FIRST_PRINTABLE && code !== CODE.quote && code !== CODE.backslash) {
      at += 1;
      code = text.charCodeAt(at);
    }
    if (code === CODE.quote) return at + 1;
    if (code !== CODE.backslash) break;
    at = findEscapeEnd(text, at + 1);
  }
  const isCut = at >= text.length;
  throw new JsonSyntaxError(
    isCut ? "The text ends within a string" : "A string contains a control character",
    at,
  );
}

/** @param start the position after the backslash. */
function findEscapeEnd(text: string, start: number): number {
  ESCAPE.lastIndex = start;
  if (ESCAPE.test(text)) return ESCAPE.lastIndex;
  const isUnicode = text[start] === "u";
  throw new JsonSyntaxError(
    isUnicode ? "An escape needs four hexadecimal digits" : "Unknown escape in a string",
    start,
  );
}

/** Finds the end of a number, `true`, `false` or `null`. @throws JsonSyntaxError */
export function findScalarEnd(text: string, start: number): number {
  SCALAR.lastIndex = start;
  // Faster than `exec`, which makes an array for each match.
  if (SCALAR.test(text)) return SCALAR.lastIndex;
  const isAtEnd = start >= text.length;
  throw new JsonSyntaxError(isAtEnd ? "The text ends too early" : "Unexpected character", start);
}

export function skipSpace(text: string, start: number): number {
  let at = start;
  for (;;) {
    const code = text.charCodeAt(at);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return at;
    at += 1;
  }
}
