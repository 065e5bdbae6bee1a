/**
 * JSON as a tree. Unlike `JSON.parse` it has the numbers as they were written, and repeated keys. It does not recurse, so
 * that no depth overflows the stack. The whole text is checked at once, but values are read when they are shown: making an
 * object for each value of a large document takes three times as long as checking it.
 */

import {
  parseStructure,
  CODE,
  findScalarEnd,
  findStringEnd,
  JsonSyntaxError,
  skipSpace,
  type JsonStructure,
} from "./json-structure.ts";

export type JsonValue = JsonContainer | JsonScalar;

export interface JsonContainer {
  readonly kind: "object" | "array";
  /** Read when they are first needed. */
  readonly entries: JsonEntry[];
}

interface JsonScalar {
  kind: "string" | "number" | "literal";
  /** The characters of a string, the digits of a number as they were written, or `true`, `false` or `null`. */
  text: string;
}

export interface JsonEntry {
  /** A name, or an index. */
  key: string | number;
  value: JsonValue;
}

/** The first place where a text is not JSON. */
export interface JsonMistake {
  message: string;
  /** In UTF-16 code units from the start of the text. */
  offset: number;
  /** Both start at 1. */
  line: number;
  column: number;
}

type JsonResult = { value: JsonValue } | { error: JsonMistake };

export function parseJsonTree(text: string): JsonResult {
  try {
    return { value: new Reader(text, parseStructure(text)).readDocument() };
  } catch (error) {
    if (!(error instanceof JsonSyntaxError)) throw error;
    return { error: locate(text, error.offset, error.message) };
  }
}

export function isContainer(value: JsonValue): value is JsonContainer {
  return value.kind === "object" || value.kind === "array";
}

function locate(text: string, offset: number, message: string): JsonMistake {
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  return { message, offset, line, column: offset - before.lastIndexOf("\n") };
}

/** Reads values of a text that was checked. */
class Reader {
  readonly #text: string;
  readonly #structure: JsonStructure;
  #at = 0;

  constructor(text: string, structure: JsonStructure) {
    this.#text = text;
    this.#structure = structure;
  }

  readDocument(): JsonValue {
    this.#skipSpace();
    return this.#readValue(0);
  }

  /** The values directly in a container. */
  readEntries(container: number): JsonEntry[] {
    const { starts, ends, followers } = this.#structure;
    const entries: JsonEntry[] = [];
    const lastAt = ends[container]! - 1;
    const isObject = this.#text.charCodeAt(starts[container]!) === CODE.objectStart;
    let inner = container + 1;
    this.#at = starts[container]! + 1;
    this.#skipSpace();
    while (this.#at < lastAt) {
      const key = isObject ? this.#readKey() : entries.length;
      const value = this.#readValue(inner);
      entries.push({ key, value });
      if (isContainer(value)) {
        this.#at = ends[inner]!;
        inner = followers[inner]!;
      }
      this.#skipSpace();
      if (this.#at < lastAt) this.#skipSeparator();
    }
    return entries;
  }

  #readKey(): string {
    const key = this.#readString();
    this.#skipSpace();
    this.#skipSeparator();
    return key;
  }

  /** @param container the number that the value has if it is a container. */
  #readValue(container: number): JsonValue {
    const start = this.#at;
    switch (this.#text.charCodeAt(start)) {
      case CODE.objectStart:
        return new LazyContainer(this, container, "object");
      case CODE.arrayStart:
        return new LazyContainer(this, container, "array");
      case CODE.quote:
        return { kind: "string", text: this.#readString() };
    }
    this.#at = findScalarEnd(this.#text, start);
    const text = this.#text.slice(start, this.#at);
    return { kind: /^[tfn]/.test(text) ? "literal" : "number", text };
  }

  #readString(): string {
    const start = this.#at;
    this.#at = findStringEnd(this.#text, start);
    const text = this.#text.slice(start + 1, this.#at - 1);
    return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
  }

  /** A colon or a comma, and the space after it. */
  #skipSeparator(): void {
    this.#at += 1;
    this.#skipSpace();
  }

  #skipSpace(): void {
    this.#at = skipSpace(this.#text, this.#at);
  }
}

class LazyContainer implements JsonContainer {
  readonly kind: "object" | "array";
  readonly #reader: Reader;
  readonly #number: number;
  #entries: JsonEntry[] | undefined;

  constructor(reader: Reader, number: number, kind: JsonContainer["kind"]) {
    this.#reader = reader;
    this.#number = number;
    this.kind = kind;
  }

  get entries(): JsonEntry[] {
    this.#entries ??= this.#reader.readEntries(this.#number);
    return this.#entries;
  }
}
