/** Names and values: headers, cookies, parameters of a query or of a form. */
import type { ReactNode } from "react";
import { CopyButton } from "../../../ui/copy.tsx";
import { LongText } from "./long-text.tsx";
import { JsonWebTokenDetails } from "./json-web-token-details.tsx";

const NAME_SHOWN_CHARS = 200;
const NAME_SPOKEN_CHARS = 60;

export interface FieldTableRow {
  name: string;
  value: string;
  /** Shown beside the value. */
  note?: ReactNode;
}

interface FieldTableProps {
  caption: string;
  rows: readonly FieldTableRow[];
}

export function FieldTable({ caption, rows }: FieldTableProps) {
  return (
    <table className="field-table">
      <caption className="hidden-text">{caption}</caption>
      <colgroup>
        <col className="field-name" />
        <col />
      </colgroup>
      <thead className="hidden-text">
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Value</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          // Names repeat, and rows have no state of their own.
          <FieldRow key={index} {...row} />
        ))}
      </tbody>
    </table>
  );
}

function FieldRow({ name, value, note }: FieldTableRow) {
  return (
    <tr>
      <th scope="row">
        <LongText text={name} maxChars={NAME_SHOWN_CHARS} />
      </th>
      <td>
        <div className="field-value">
          <div>
            <LongText text={value} />
            {note !== undefined && <span className="field-note">{note}</span>}
          </div>
          <CopyButton
            text={value}
            kind="quiet"
            label={`Copy the value of ${name.slice(0, NAME_SPOKEN_CHARS).toWellFormed()}`}
          />
        </div>
        <JsonWebTokenDetails text={value} />
      </td>
    </tr>
  );
}
