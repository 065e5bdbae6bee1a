/**
 * JSON as a tree. Unlike `JSON.parse` it has the numbers as they were written, and repeated keys. It does not recurse, so
 * that no depth overflows the stack.
 */

export type JsonValue = JsonContainer | JsonScalar;

export interface JsonContainer {
  kind: "object" | "array";
  entries: JsonEntry[];
}

export interface JsonScalar {
  kind: "string" | "number" | "literal";
  /** Of a string its characters, of a number its digits as they were written, or `true`, `false` or `null`. */
  text: string;
}

export interface JsonEntry {
  /** A name, or an index. */
  key: string | number;
  value: JsonValue;
}

export interface JsonError {
  message: string;
  /** In UTF-16 code units from the start of the text. */
  offset: number;
  /** Both start at 1. */
  line: number;
  column: number;
}

export type JsonResult = { value: JsonValue } | { error: JsonError };

export function parseJson(text: string): JsonResult {
  const reader = new Reader(text);
  try {
    return { value: reader.readDocument() };
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return { error: locate(text, reader.at, error.message) };
  }
}

export function isContainer(value: JsonValue): value is JsonContainer {
  return value.kind === "object" || value.kind === "array";
}

function locate(text: string, offset: number, message: string): JsonError {
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  return { message, offset, line, column: offset - before.lastIndexOf("\n") };
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;
const SPECIAL_CHARACTER = /[\\\u0000-\u001f]/;
const PLAIN_PART = /[^"\\\u0000-\u001f]*/y;
const ESCAPES: Record<string, string> = {
  '"': '"',
  "\\": "\\",
  "/": "/",
  b: "\b",
  f: "\f",
  n: "\n",
  r: "\r",
  t: "\t",
};

class Reader {
  at = 0;
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  readDocument(): JsonValue {
    const root = this.#readTree();
    this.#skipSpace();
    if (this.at < this.#text.length) this.#fail("Unexpected text after the value");
    return root;
  }

  /** The containers that are open are on a stack of our own. */
  #readTree(): JsonValue {
    const open: JsonContainer[] = [];
    for (;;) {
      this.#skipSpace();
      const container = open.at(-1);
      const key = container?.kind === "object" ? this.#readKey() : (container?.entries.length ?? 0);
      const value = this.#readValueStart();
      container?.entries.push({ key, value });
      if (isContainer(value) && !this.#takeEnd(value)) {
        open.push(value);
        continue;
      }
      let finished = value;
      for (;;) {
        const parent = open.at(-1);
        if (parent === undefined) return finished;
        this.#skipSpace();
        if (this.#take(",")) break;
        if (!this.#takeEnd(parent)) {
          this.#fail(`Expected "," or "${parent.kind === "object" ? "}" : "]"}"`);
        }
        finished = parent;
        open.pop();
      }
    }
  }

  #readKey(): string {
    if (this.#text[this.at] !== '"') this.#fail("Expected a name in quotation marks");
    const key = this.#readString();
    this.#skipSpace();
    if (!this.#take(":")) this.#fail('Expected ":"');
    this.#skipSpace();
    return key;
  }

  #readValueStart(): JsonValue {
    const first = this.#text[this.at];
    if (first === "{" || first === "[") {
      this.at += 1;
      return { kind: first === "{" ? "object" : "array", entries: [] };
    }
    if (first === '"') return { kind: "string", text: this.#readString() };
    const number = this.#match(NUMBER);
    if (number) return { kind: "number", text: number };
    const literal = this.#match(LITERAL);
    if (literal) return { kind: "literal", text: literal };
    return this.#fail(first === undefined ? "The text ends too early" : "Unexpected character");
  }

  #readString(): string {
    this.at += 1;
    const end = this.#text.indexOf('"', this.at);
    const text = this.#text.slice(this.at, end);
    // Without escapes, as most are.
    if (end >= 0 && !SPECIAL_CHARACTER.test(text)) {
      this.at = end + 1;
      return text;
    }
    const parts: string[] = [];
    for (;;) {
      parts.push(this.#match(PLAIN_PART) ?? "");
      const next = this.#text[this.at];
      if (next === undefined) this.#fail("The text ends within a string");
      if (next !== '"' && next !== "\\") this.#fail("A string contains a control character");
      this.at += 1;
      if (next === '"') return parts.join("");
      parts.push(this.#readEscape());
    }
  }

  #readEscape(): string {
    const letter = this.#text[this.at] ?? "";
    if (letter === "u") {
      const digits = this.#text.slice(this.at + 1, this.at + 5);
      if (!/^[\da-f]{4}$/i.test(digits)) this.#fail("An escape needs four hexadecimal digits");
      this.at += 5;
      return String.fromCharCode(parseInt(digits, 16));
    }
    const character = Object.hasOwn(ESCAPES, letter) ? ESCAPES[letter] : undefined;
    if (character === undefined) this.#fail("Unknown escape in a string");
    this.at += 1;
    return character;
  }

  #skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.at += 1;
    }
  }

  #take(character: string): boolean {
    if (this.#text[this.at] !== character) return false;
    this.at += 1;
    return true;
  }

  /** Only directly after the start, or after a value: `[1,]` is not JSON. */
  #takeEnd({ kind }: JsonContainer): boolean {
    this.#skipSpace();
    return this.#take(kind === "object" ? "}" : "]");
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.at;
    // Faster than `exec`, which makes an array for each match.
    if (!pattern.test(this.#text)) return null;
    const text = this.#text.slice(this.at, pattern.lastIndex);
    this.at = pattern.lastIndex;
    return text;
  }

  #fail(message: string): never {
    throw new SyntaxError(message);
  }
}
