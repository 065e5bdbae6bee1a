/** JSON as a tree whose values open and close, with the keys of a tree view (WAI-ARIA). */
import { useId, useMemo, useState, type KeyboardEvent } from "react";
import { Button } from "../../../../ui/button.tsx";
import { formatCount } from "../../../../ui/numbers.ts";
import { WindowedRows } from "../../../../ui/text/windowed-rows.tsx";
import { isContainer, type JsonContainer, type JsonValue } from "../../decode/json/json.ts";
import { formatScalar } from "../../decode/json/json-format.ts";
import {
  chooseInitiallyOpen,
  formatContainer,
  listRows,
  TREE_ROWS_MAX,
  type TreeRow,
} from "../../decode/json/json-tree-rows.ts";
import { VisitorText } from "../../../../ui/text/visitor-text.tsx";
import { JsonSelection } from "./json-selection.tsx";
import type { RenderBody } from "./nested-body.ts";

const ROW_HEIGHT_PX = 24;
const PAGE_ROWS = 15;
/** Deeper levels are not indented further, so that their values stay visible. */
const INDENT_MAX_LEVELS = 16;
const INDENT_REM = 1.125;
const KEY_SHOWN_CHARS = 100;
const VALUE_SHOWN_CHARS = 300;

interface JsonTreeProps {
  name: string;
  root: JsonValue;
  renderBody: RenderBody;
}

export function JsonTree({ name, root, renderBody }: JsonTreeProps) {
  const id = useId();
  const [open, setOpen] = useState<ReadonlySet<JsonValue>>(() => chooseInitiallyOpen(root));
  const rows = useMemo(() => listRows(root, open), [root, open]);
  const [selected, setSelected] = useState<number | null>(null);
  const row = selected === null ? undefined : rows[selected];

  function toggle(value: JsonContainer, isOpen: boolean): void {
    const next = new Set(open);
    if (isOpen) next.add(value);
    else next.delete(value);
    setOpen(next);
  }

  function handleKey(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = getKeyAction(event.key, rows, selected ?? -1, open);
    if (action === null) return;
    event.preventDefault();
    event.stopPropagation();
    if (action.select !== undefined) setSelected(action.select);
    if (action.toggle !== undefined) toggle(action.toggle, !open.has(action.toggle));
  }

  return (
    <>
      <div className="tree-actions">
        <Button kind="link" onClick={() => setOpen(listContainers(root))}>
          Open all
        </Button>
        <Button
          kind="link"
          onClick={() => {
            setSelected(null);
            setOpen(new Set([root]));
          }}
        >
          Close all
        </Button>
      </div>
      <WindowedRows
        className="code-box"
        role="tree"
        aria-label={`${name} as a tree`}
        aria-activedescendant={row === undefined ? undefined : `${id}-${selected}`}
        onKeyDown={handleKey}
        count={rows.length}
        rowHeight={ROW_HEIGHT_PX}
        activeIndex={selected ?? undefined}
        renderRow={(index) => {
          const each = rows[index];
          if (each === undefined) return null;
          return (
            <TreeItem
              id={`${id}-${index}`}
              row={each}
              isOpen={isContainer(each.value) && open.has(each.value)}
              isSelected={index === selected}
              onClick={() => {
                setSelected(index);
                if (isContainer(each.value)) toggle(each.value, !open.has(each.value));
              }}
            />
          );
        }}
      />
      {rows.length >= TREE_ROWS_MAX && (
        <p className="hint">Only the first {formatCount(TREE_ROWS_MAX)} rows are shown.</p>
      )}
      {row !== undefined && <JsonSelection key={selected} row={row} renderBody={renderBody} />}
    </>
  );
}

interface KeyAction {
  /** The row to select. */
  select?: number;
  /** The value to open or close. */
  toggle?: JsonContainer;
}

/** @param at the selected row; -1 when there is none. @returns null for a key that a tree does not handle. */
function getKeyAction(
  key: string,
  rows: TreeRow[],
  at: number,
  open: ReadonlySet<JsonValue>,
): KeyAction | null {
  const row = rows[at];
  const last = rows.length - 1;
  const value = row?.value;
  const container = value !== undefined && isContainer(value) ? value : undefined;
  const isOpen = container !== undefined && open.has(container);
  switch (key) {
    case "ArrowDown":
      return { select: Math.min(at + 1, last) };
    case "ArrowUp":
      return { select: Math.max(at - 1, 0) };
    case "PageDown":
      return { select: Math.min(at + PAGE_ROWS, last) };
    case "PageUp":
      return { select: Math.max(at - PAGE_ROWS, 0) };
    case "Home":
      return { select: 0 };
    case "End":
      return { select: last };
    case "ArrowRight":
      if (container === undefined || container.entries.length === 0) return {};
      return isOpen ? { select: at + 1 } : { toggle: container };
    case "ArrowLeft":
      if (isOpen) return { toggle: container };
      return row?.parent ? { select: rows.lastIndexOf(row.parent, at) } : {};
    case "Enter":
    case " ":
      return container === undefined ? {} : { toggle: container };
    default:
      return null;
  }
}

/** Does not recurse: a document can have thousands of levels. */
function listContainers(root: JsonValue): Set<JsonValue> {
  const found = new Set<JsonValue>();
  const waiting = [root];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    if (!isContainer(value)) continue;
    found.add(value);
    for (const entry of value.entries) waiting.push(entry.value);
  }
  return found;
}

interface TreeItemProps {
  id: string;
  row: TreeRow;
  isOpen: boolean;
  isSelected: boolean;
  onClick: () => void;
}

function TreeItem({ id, row, isOpen, isSelected, onClick }: TreeItemProps) {
  const { key, value, level, position, siblings } = row;
  const canOpen = isContainer(value) && value.entries.length > 0;
  const indent = Math.min(level - 1, INDENT_MAX_LEVELS) * INDENT_REM;
  return (
    <div
      id={id}
      role="treeitem"
      className="tree-item"
      aria-level={level}
      aria-posinset={position}
      aria-setsize={siblings}
      aria-selected={isSelected}
      {...(canOpen && { "aria-expanded": isOpen })}
      style={{ paddingInlineStart: `${indent}rem` }}
      onClick={onClick}
    >
      <span className="tree-mark" aria-hidden="true">
        {canOpen ? (isOpen ? "▾" : "▸") : ""}
      </span>
      {key !== null && (
        <span className={typeof key === "number" ? "tree-index" : "tree-key"}>
          <VisitorText text={truncate(String(key), KEY_SHOWN_CHARS)} />:{" "}
        </span>
      )}
      {isContainer(value) ? (
        <span className="hint">{formatContainer(value)}</span>
      ) : (
        <span className={`tree-${value.kind}`}>
          <VisitorText text={formatScalar(value.kind, truncate(value.text, VALUE_SHOWN_CHARS))} />
        </span>
      )}
    </div>
  );
}

function truncate(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars).toWellFormed()}…`;
}
