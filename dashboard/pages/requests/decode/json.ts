/**
 * JSON as a tree. Unlike `JSON.parse` it has the numbers as they were written, and repeated keys. It does not recurse, so
 * that no depth overflows the stack. The whole text is checked at once, but values are read when they are shown: making an
 * object for each value of a large document takes three times as long as checking it.
 */

export type JsonValue = JsonContainer | JsonScalar;

export interface JsonContainer {
  readonly kind: "object" | "array";
  /** Read when they are first needed. */
  readonly entries: JsonEntry[];
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
/** What follows a backslash. */
const ESCAPE = /["\\/bfnrt]|u[\dA-Fa-f]{4}/y;
const PLAIN_PART = /[^"\\\u0000-\u001f]*/y;
/** Without escapes, as most strings are. */
const PLAIN_STRING = /"[^"\\\u0000-\u001f]*"/y;

class Reader {
  at = 0;
  readonly #text: string;
  // By the number of a container, in the order in which they begin.
  /** The position of its opening bracket. */
  readonly #starts: number[] = [];
  /** The position after its closing bracket. */
  readonly #ends: number[] = [];
  /** The number of the first container that begins after it. */
  readonly #followers: number[] = [];

  constructor(text: string) {
    this.#text = text;
  }

  readDocument(): JsonValue {
    this.#check();
    this.at = 0;
    this.#skipSpace();
    return this.#readValue(0);
  }

  /** The values directly in a container. */
  readEntries(container: number): JsonEntry[] {
    const entries: JsonEntry[] = [];
    const lastAt = this.#ends[container]! - 1;
    let inner = container + 1;
    this.at = this.#starts[container]! + 1;
    this.#skipSpace();
    while (this.at < lastAt) {
      const key = this.#isObject(container) ? this.#readKey() : entries.length;
      const value = this.#readValue(inner);
      entries.push({ key, value });
      if (isContainer(value)) {
        this.at = this.#ends[inner]!;
        inner = this.#followers[inner]!;
      }
      this.#skipSpace();
      this.#take(",");
      this.#skipSpace();
    }
    return entries;
  }

  #readKey(): string {
    const start = this.at;
    this.#skipScalar();
    const key = this.#unescape(start);
    this.#skipColon();
    return key;
  }

  /** @param container the number that the value has if it is a container. */
  #readValue(container: number): JsonValue {
    const start = this.at;
    if (this.#isContainerStart()) return new LazyContainer(this, container, this.#text[start]!);
    const kind = this.#skipScalar();
    const text = kind === "string" ? this.#unescape(start) : this.#text.slice(start, this.at);
    return { kind, text };
  }

  /** The string from there to here. */
  #unescape(start: number): string {
    const text = this.#text.slice(start + 1, this.at - 1);
    return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
  }

  /** @throws SyntaxError at `at`. The containers that are open are on a stack of our own. */
  #check(): void {
    const open: number[] = [];
    do {
      this.#skipSpace();
      const parent = open.at(-1);
      if (parent !== undefined && this.#isObject(parent)) this.#skipKey();
      if (this.#isContainerStart()) {
        const container = this.#addContainer();
        open.push(container);
        this.#skipSpace();
        if (this.#text[this.at] !== this.#getEnd(container)) continue;
      } else {
        this.#skipScalar();
      }
      this.#closeFinished(open);
    } while (open.length > 0);
    this.#skipSpace();
    if (this.at < this.#text.length) this.#fail("Unexpected text after the value");
  }

  /** @returns its number. Its end is not known yet. */
  #addContainer(): number {
    this.#starts.push(this.at);
    this.#ends.push(0);
    this.at += 1;
    return this.#followers.push(0) - 1;
  }

  /** After a value: until the next one of the same container, or of one around it. */
  #closeFinished(open: number[]): void {
    for (let container = open.at(-1); container !== undefined; container = open.at(-1)) {
      this.#skipSpace();
      if (this.#take(",")) return;
      const end = this.#getEnd(container);
      if (!this.#take(end)) this.#fail(`Expected "," or "${end}"`);
      this.#ends[container] = this.at;
      this.#followers[container] = this.#starts.length;
      open.pop();
    }
  }

  #isContainerStart(): boolean {
    const first = this.#text[this.at];
    return first === "{" || first === "[";
  }

  #isObject(container: number): boolean {
    return this.#text[this.#starts[container]!] === "{";
  }

  #getEnd(container: number): "}" | "]" {
    return this.#isObject(container) ? "}" : "]";
  }

  #skipKey(): void {
    if (this.#text[this.at] !== '"') this.#fail("Expected a name in quotation marks");
    this.#skipString();
    this.#skipColon();
  }

  #skipColon(): void {
    this.#skipSpace();
    if (!this.#take(":")) this.#fail('Expected ":"');
    this.#skipSpace();
  }

  #skipScalar(): JsonScalar["kind"] {
    const first = this.#text[this.at];
    if (first === '"') {
      this.#skipString();
      return "string";
    }
    if (this.#skip(NUMBER)) return "number";
    if (this.#skip(LITERAL)) return "literal";
    return this.#fail(first === undefined ? "The text ends too early" : "Unexpected character");
  }

  #skipString(): void {
    if (this.#skip(PLAIN_STRING)) return;
    this.at += 1;
    for (;;) {
      this.#skip(PLAIN_PART);
      const next = this.#text[this.at];
      if (next === undefined) this.#fail("The text ends within a string");
      if (next !== '"' && next !== "\\") this.#fail("A string contains a control character");
      this.at += 1;
      if (next === '"') return;
      if (!this.#skip(ESCAPE)) this.#failInEscape();
    }
  }

  #failInEscape(): never {
    const isUnicode = this.#text[this.at] === "u";
    this.#fail(
      isUnicode ? "An escape needs four hexadecimal digits" : "Unknown escape in a string",
    );
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

  /** Faster than `exec`, which makes an array for each match. */
  #skip(pattern: RegExp): boolean {
    pattern.lastIndex = this.at;
    if (!pattern.test(this.#text)) return false;
    this.at = pattern.lastIndex;
    return true;
  }

  #fail(message: string): never {
    throw new SyntaxError(message);
  }
}

class LazyContainer implements JsonContainer {
  readonly kind: "object" | "array";
  readonly #reader: Reader;
  readonly #number: number;
  #entries: JsonEntry[] | undefined;

  constructor(reader: Reader, number: number, bracket: string) {
    this.#reader = reader;
    this.#number = number;
    this.kind = bracket === "{" ? "object" : "array";
  }

  get entries(): JsonEntry[] {
    this.#entries ??= this.#reader.readEntries(this.#number);
    return this.#entries;
  }
}
