/** The visible rows of a JSON tree: the page shows a few of them at a time. */
import { isContainer, type JsonContainer, type JsonEntry, type JsonValue } from "./json.ts";

/** A tree has at most about this many rows until the user opens or closes a value. */
const INITIAL_ROWS = 400;
/** Further rows are not shown; the user can download the whole body. */
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

/** The values that are open when a tree is first shown: the outer ones first, as long as their rows are few. */
export function chooseInitiallyOpen(root: JsonValue): Set<JsonValue> {
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
export function formatJsonPath(row: TreeRow): string {
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
