/** Tables of text and numbers, which can be selected and copied into a spreadsheet. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { Key, ReactNode } from "react";
import { QueryContent } from "./feedback/query-content.tsx";
import { copyAsTabSeparated } from "./text/tab-separated.ts";
import { useRowFocus } from "./focus/row-focus.ts";

export interface Column<Entry> {
  title: string;
  /** Below the title. */
  note?: ReactNode;
  /** Numbers are aligned at the right, and stay on one line. */
  align?: "start" | "end";
  /** Only for screen readers, such as that of a column of menus. */
  isTitleHidden?: boolean;
  /** Left out on narrow screens. */
  isSecondary?: boolean;
  render: (entry: Entry) => ReactNode;
}

interface TableProps<Entry> {
  /** Describes the table to screen readers. */
  caption: string;
  columns: readonly Column<Entry>[];
  entries: readonly Entry[];
  getKey: (entry: Entry) => Key;
}

interface TablePageProps<Entry> extends Omit<TableProps<Entry>, "entries"> {
  query: UseQueryResult<Entry[]>;
  /** Shown while there are no entries. */
  empty: ReactNode;
}

/** The entries of a list as the content of its page. */
export function TablePage<Entry>({ query, empty, ...table }: TablePageProps<Entry>) {
  return (
    <QueryContent query={query}>
      {(entries) =>
        entries.length === 0 ? (
          empty
        ) : (
          <section className="card" aria-label={table.caption}>
            <Table {...table} entries={entries} />
          </section>
        )
      }
    </QueryContent>
  );
}

/** On a narrow screen the table scrolls within itself, so that the page does not. */
export function Table<Entry>({ caption, columns, entries, getKey }: TableProps<Entry>) {
  return (
    <div className="table-frame" role="group" aria-label={caption} tabIndex={0}>
      <table onCopy={copyAsTabSeparated}>
        <caption className="hidden-text">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.title} scope="col" className={getCellClass(column)}>
                {column.isTitleHidden ? (
                  <span className="hidden-text">{column.title}</span>
                ) : (
                  column.title
                )}
                {column.note && <div>{column.note}</div>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <TableRow key={getKey(entry)} columns={columns} entry={entry} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function TableRow<Entry>({
  columns,
  entry,
}: Pick<TableProps<Entry>, "columns"> & { entry: Entry }) {
  return (
    <tr {...useRowFocus<HTMLTableRowElement>()}>
      {columns.map((column) => (
        <td key={column.title} className={getCellClass(column)}>
          {column.render(entry)}
        </td>
      ))}
    </tr>
  );
}

function getCellClass<Entry>({ align = "start", isSecondary = false }: Column<Entry>): string {
  return isSecondary ? `${align} secondary` : align;
}
