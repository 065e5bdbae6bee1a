/** JSON values as text. Nothing here recurses: a document can have thousands of levels. */
import { isContainer, type JsonValue } from "./json.ts";
import { listRows, type TreeRow } from "./json-tree-rows.ts";

/** Sorts the fields of all objects in place, so that equal values have equal texts. */
export function sortFields(root: JsonValue): void {
  const waiting = [root];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (!isContainer(value)) continue;
    if (value.kind === "object") value.entries.sort((a, b) => (a.key < b.key ? -1 : 1));
    for (const entry of value.entries) waiting.push(entry.value);
  }
}

/** The value as JSON, indented, with one entry per line. */
export function formatJson(root: JsonValue): string {
  const lines: string[] = [];
  const closing: { row: TreeRow; bracket: string }[] = [];
  const close = (level: number) => {
    while (closing.length > 0 && closing.at(-1)!.row.level >= level) {
      const { row, bracket } = closing.pop()!;
      lines.push("  ".repeat(indent(row.level)) + bracket + (isLast(row) ? "" : ","));
    }
  };
  for (const row of listRows(root, { has: isContainer })) {
    close(row.level);
    const { value, key, level } = row;
    const name = typeof key === "string" ? `${JSON.stringify(key)}: ` : "";
    const start = "  ".repeat(indent(level)) + name;
    const comma = isLast(row) ? "" : ",";
    if (!isContainer(value)) {
      lines.push(start + formatScalar(value.kind, value.text) + comma);
      continue;
    }
    const [before, after] = value.kind === "object" ? ["{", "}"] : ["[", "]"];
    if (value.entries.length === 0) lines.push(start + before + after + comma);
    else {
      lines.push(start + before);
      closing.push({ row, bracket: after });
    }
  }
  close(0);
  return lines.join("\n");
}

/** Deeper levels are not indented further: 10,000 of them would make 100 MB of spaces. */
const INDENT_MAX_LEVELS = 100;

function indent(level: number): number {
  return Math.min(level - 1, INDENT_MAX_LEVELS);
}

function isLast({ position, siblings }: TreeRow): boolean {
  return position === siblings;
}

/** The scalar as JSON: a string gets quotation marks and escapes. */
export function formatScalar(kind: "string" | "number" | "literal", text: string): string {
  return kind === "string" ? JSON.stringify(text) : text;
}
