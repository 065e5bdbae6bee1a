/** The differences between two requests or responses, one value a row. */
import type { ValueChange } from "../../decode/compare-requests.ts";
import { LongText } from "../long-text.tsx";

const NAME_SHOWN_CHARS = 200;

interface ChangeTableProps {
  caption: string;
  changes: readonly ValueChange[];
}

export function ChangeTable({ caption, changes }: ChangeTableProps) {
  return (
    <table className="change-table">
      <caption className="hidden-text">{caption}</caption>
      <colgroup>
        <col className="field-name" />
        <col />
        <col />
      </colgroup>
      <thead className="hidden-text">
        <tr>
          <th scope="col">Name</th>
          <th scope="col">Original</th>
          <th scope="col">New</th>
        </tr>
      </thead>
      <tbody>
        {changes.map(({ name, before, after }, index) => (
          <tr key={index}>
            <th scope="row">
              <LongText text={name} maxChars={NAME_SHOWN_CHARS} />
            </th>
            <td>
              {before === null ? (
                <span className="hint">absent</span>
              ) : (
                <del>
                  <LongText text={before} />
                </del>
              )}
            </td>
            <td>
              {after === null ? (
                <span className="hint">removed</span>
              ) : (
                <ins>
                  <LongText text={after} />
                </ins>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
