/** The text of a YAML file as data, and the line and column of each of its values. */
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type ErrorCode,
  type Node,
  type Pair,
  type Scalar,
  type YAMLError,
} from "yaml";
import { replaceReferences } from "./environment-references.ts";
import { formatCount } from "../output/format/format-count.ts";

/** Something that is wrong in the file, and its position. Lines and columns count from 1. */
export interface Problem {
  line: number;
  column: number;
  message: string;
}

const PROBLEMS_SHOWN = 10;

/**
 * @returns each problem on a line of its own, in the order of the file; of many, the first ones and how many more there
 * are.
 */
export function formatProblems(file: string, problems: readonly Problem[]): string {
  const lines = problems
    .toSorted((a, b) => a.line - b.line || a.column - b.column)
    .slice(0, PROBLEMS_SHOWN)
    .map(({ line, column, message }) => `${file}:${line}:${column}: ${message}`);
  const hidden = problems.length - lines.length;
  if (hidden > 0) lines.push(`and ${formatCount(hidden, "more problem")}`);
  return lines.join("\n");
}

/** Names and indexes that lead to a value: `["tunnels", "web", "local"]`. */
export type Path = readonly PropertyKey[];

const SYNTAX_MESSAGES: Partial<Record<ErrorCode, string>> = {
  BAD_ALIAS: "the name of this alias is not valid",
  BAD_DQ_ESCAPE: "this escape is not valid between double quotes; use single quotes",
  BAD_INDENT: "this line is indented wrongly",
  BAD_SCALAR_START: "a value that starts with this character needs quotes",
  DUPLICATE_KEY: "this key is already used above",
  BLOCK_AS_IMPLICIT_KEY: "the line after this value is indented wrongly, or the value needs quotes",
  MISSING_CHAR: "a quote, a bracket, a comma or a colon is missing here",
  MULTILINE_IMPLICIT_KEY: "a colon is missing, or a value that spans lines needs quotes",
  MULTIPLE_DOCS: "the file may have only one document; remove this ---",
  TAB_AS_INDENT: "lines must be indented with spaces, not with tabs",
  TAG_RESOLVE_FAILED: "tags are not supported; remove it, or write the value in quotes",
  UNEXPECTED_TOKEN: "this character is not allowed here; a value that contains it needs quotes",
};
const OTHER_SYNTAX_MESSAGE = "this is not valid YAML; check the indentation and the quotes";

/** The library has one code for a line that is indented wrongly, and for a bracket that is not closed. */
function describeSyntaxError({ code, message }: YAMLError): string {
  if (code === "BAD_INDENT" && message.startsWith("Flow "))
    return "a bracket that is opened above is not closed before this";
  return SYNTAX_MESSAGES[code] ?? OTHER_SYNTAX_MESSAGE;
}

export class YamlSource {
  /** Undefined when there are problems. */
  readonly data: unknown;
  /** What is wrong with the syntax, and with references to the environment. */
  readonly problems: Problem[] = [];
  readonly #text: string;
  readonly #document: Document.Parsed;
  readonly #lines = new LineCounter();

  constructor(text: string, environment: Readonly<Record<string, string | undefined>>) {
    this.#text = text;
    this.#document = parseDocument(text, {
      lineCounter: this.#lines,
      prettyErrors: false,
      merge: true,
    });
    // The first error of the syntax causes most of the others.
    const [invalid] = [...this.#document.errors, ...this.#document.warnings];
    if (invalid) {
      this.#report(invalid.pos[0], describeSyntaxError(invalid));
      return;
    }
    this.#resolveScalars(environment);
    if (this.problems.length === 0) this.data = this.#toData();
  }

  /** The place of the value at `path`, or of the innermost value on the way to it. */
  locateValue(path: Path): { line: number; column: number } {
    return this.#toPosition(this.#findPairs(path).at(-1)?.value?.range?.[0]);
  }

  /** The place of the key that `path` ends with, or of the innermost key on the way to it. */
  locateKey(path: Path): { line: number; column: number } {
    return this.#toPosition(this.#findPairs(path).at(-1)?.key?.range?.[0]);
  }

  /** Replaces references to the environment, and keeps numbers such as 0123 as they are written. */
  #resolveScalars(environment: Readonly<Record<string, string | undefined>>): void {
    visit(this.#document, {
      Scalar: (key, node) => {
        if (key === "key") return;
        if (typeof node.value === "number" && String(node.value) !== node.source) {
          node.value = node.source;
        }
        if (typeof node.value === "string") this.#replaceReferences(node, environment);
      },
    });
  }

  #replaceReferences(
    node: Scalar,
    environment: Readonly<Record<string, string | undefined>>,
  ): void {
    const { text, problems } = replaceReferences(node.value as string, environment);
    const start = node.range?.[0] ?? 0;
    for (const { at, message } of problems) {
      // Quotes, escapes and line breaks shift the index, so the reference is looked for in the source.
      const reference = (node.value as string).slice(at).split(/[}\s]/)[0]!;
      const found = this.#text.indexOf(reference, start + at);
      this.#report(found === -1 ? start : found, message);
    }
    if (text === node.value) return;
    const isWord = node.type === "PLAIN" && (text === "true" || text === "false");
    node.value = isWord ? text === "true" : text;
  }

  #toData(): unknown {
    try {
      return this.#document.toJS() as unknown;
    } catch {
      this.#report(0, "the file has an alias without an anchor, or too many aliases");
      return undefined;
    }
  }

  /** The entries on the way to `path`; fewer than its parts when it leads to something that is missing. */
  #findPairs(path: Path): { key: Node | null; value: Node | null }[] {
    let node = this.#document.contents as Node | null;
    const pairs: { key: Node | null; value: Node | null }[] = [{ key: node, value: node }];
    for (const part of path) {
      if (isAlias(node)) node = node.resolve(this.#document) ?? null;
      if (isMap<Node, Node | null>(node)) {
        const pair: Pair<Node, Node | null> | undefined = node.items.find(
          ({ key }) => isScalar(key) && String(key.value) === String(part),
        );
        if (!pair) break;
        pairs.push({ key: pair.key, value: pair.value ?? pair.key });
        node = pair.value;
      } else if (isSeq<Node>(node)) {
        node = node.items[Number(part)] ?? null;
        if (node) pairs.push({ key: node, value: node });
      } else break;
    }
    return pairs;
  }

  #report(offset: number, message: string): void {
    this.problems.push({ ...this.#toPosition(offset), message });
  }

  #toPosition(offset = 0): { line: number; column: number } {
    const { line, col } = this.#lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  }
}
