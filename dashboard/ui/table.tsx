/** Tables of text and numbers, which can be selected and copied into a spreadsheet. */
import type { Key, ReactNode } from "react";

export interface Column<Entry> {
  title: string;
  /** Numbers are aligned at the right. */
  align?: "start" | "end";
  render: (entry: Entry) => ReactNode;
}

export interface TableProps<Entry> {
  /** Describes the table to screen readers. */
  caption: string;
  columns: readonly Column<Entry>[];
  entries: readonly Entry[];
  getKey: (entry: Entry) => Key;
}

/** On a narrow screen the table scrolls within itself, so that the page does not. */
export function Table<Entry>({ caption, columns, entries, getKey }: TableProps<Entry>) {
  return (
    <div className="table-frame" role="group" aria-label={caption} tabIndex={0}>
      <table>
        <caption className="hidden-text">{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ title, align }) => (
              <th key={title} scope="col" className={align}>
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={getKey(entry)}>
              {columns.map(({ title, align, render }) => (
                <td key={title} className={align}>
                  {render(entry)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
