/** What differs between two requests or responses, one value a row. */
import { LongText } from "../long-text.tsx";

export interface Change {
  name: string;
  /** null: the value does not exist there. */
  before: string | null;
  after: string | null;
}

export function ChangeTable({ caption, changes }: { caption: string; changes: readonly Change[] }) {
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
              <LongText text={name} maxChars={200} />
            </th>
            <td>
              {before === null ? (
                <span className="hint">not there</span>
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
