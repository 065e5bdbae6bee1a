/** The visible rows of a JSON tree: the page shows a few of them at a time. */
import { isContainer, type JsonContainer, type JsonEntry, type JsonValue } from "./json.ts";

/** Rows that a tree has before its reader opens or closes anything, as far as possible. */
const INITIAL_ROWS = 400;
/** More are not shown: they can be downloaded. */
export const TREE_ROWS_MAX = 200_000;

export interface TreeRow {
  /** null for the whole document. */
  key: string | number | null;
  value: JsonValue;
  /** From 1. */
  level: number;
  /** Among its siblings, from 1. */
  position: number;
  siblings: number;
  /** The row of the value that contains this one; null for the whole document. */
  parent: TreeRow | null;
}

/** Opens the outer values first, as long as their rows are few. */
export function chooseOpen(root: JsonValue): Set<JsonValue> {
  const open = new Set<JsonValue>();
  let rows = 1;
  let level = [root];
  while (level.length > 0) {
    const next: JsonValue[] = [];
    for (const value of level) {
      if (!isContainer(value) || value.entries.length === 0) continue;
      if (rows + value.entries.length > INITIAL_ROWS && open.size > 0) continue;
      open.add(value);
      rows += value.entries.length;
      if (rows <= INITIAL_ROWS) next.push(...value.entries.map((entry) => entry.value));
    }
    level = next;
  }
  return open;
}

/** Which values are open, so that their entries are visible. */
type OpenValues = Pick<ReadonlySet<JsonValue>, "has">;

/** Does not recurse: a document can have thousands of levels. */
export function listRows(root: JsonValue, open: OpenValues): TreeRow[] {
  const rows: TreeRow[] = [];
  const first: TreeRow = {
    key: null,
    value: root,
    level: 1,
    position: 1,
    siblings: 1,
    parent: null,
  };
  rows.push(first);
  const walks = openRow(first, open);
  while (walks.length > 0 && rows.length < TREE_ROWS_MAX) {
    const walk = walks.at(-1)!;
    const entry = walk.entries[walk.next];
    if (entry === undefined) {
      walks.pop();
      continue;
    }
    walk.next += 1;
    const row: TreeRow = {
      ...entry,
      level: walk.parent.level + 1,
      position: walk.next,
      siblings: walk.entries.length,
      parent: walk.parent,
    };
    rows.push(row);
    walks.push(...openRow(row, open));
  }
  return rows;
}

interface Walk {
  parent: TreeRow;
  entries: JsonEntry[];
  next: number;
}

function openRow(row: TreeRow, open: OpenValues): Walk[] {
  const { value } = row;
  return isContainer(value) && open.has(value)
    ? [{ parent: row, entries: value.entries, next: 0 }]
    : [];
}

/** `$.items[3].name`, as in JSONPath (RFC 9535). */
export function formatPath(row: TreeRow): string {
  const parts: string[] = [];
  for (let at: TreeRow | null = row; at !== null; at = at.parent) {
    const { key } = at;
    if (key === null) parts.push("$");
    else if (typeof key === "number") parts.push(`[${key}]`);
    else parts.push(/^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`);
  }
  return parts.reverse().join("");
}

/** `{2 fields}`, `[1 item]`. */
export function formatContainer({ kind, entries }: JsonContainer): string {
  const { length } = entries;
  if (kind === "object") return length === 1 ? "{1 field}" : `{${length} fields}`;
  return length === 1 ? "[1 item]" : `[${length} items]`;
}

/** Sorts the fields of all objects, so that texts of equal values are equal. */
export function sortFields(root: JsonValue): void {
  const waiting = [root];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (!isContainer(value)) continue;
    if (value.kind === "object") value.entries.sort((a, b) => (a.key < b.key ? -1 : 1));
    for (const entry of value.entries) waiting.push(entry.value);
  }
}

/** JSON again, with line breaks. */
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

/** As it is written in JSON. */
export function formatScalar(kind: "string" | "number" | "literal", text: string): string {
  return kind === "string" ? JSON.stringify(text) : text;
}
