/** The parts of a multipart body, each shown by its own type. */
import { useMemo, useState } from "react";
import { formatBytes } from "../../../../ui/numbers.ts";
import { parseMultipart, type MultipartPart } from "../../decode/multipart.ts";
import { FieldTable } from "../field-table.tsx";
import { LongText } from "../long-text.tsx";
import type { RenderBody } from "./nested-body.ts";

const TITLE_SHOWN_CHARS = 200;
/** Which parts are open at first. */
const OPEN_MAX_BYTES = 1_000;
const OPEN_PARTS_MAX = 10;

interface MultipartViewProps {
  bytes: Uint8Array<ArrayBuffer>;
  boundary: string | undefined;
  renderBody: RenderBody;
}

export function MultipartView({ bytes, boundary, renderBody }: MultipartViewProps) {
  const body = useMemo(() => parseMultipart(bytes, boundary), [bytes, boundary]);
  if ("problem" in body) {
    return (
      <p className="hint">
        {body.problem === "no_boundary"
          ? "The content type names no boundary, so the parts can't be separated."
          : "The boundary of the content type does not occur in the body."}
      </p>
    );
  }
  return (
    <div className="parts">
      {body.parts.map((part, index) => (
        <Part key={index} part={part} index={index} renderBody={renderBody} />
      ))}
      {body.hasMore && <p className="hint">Only the first {body.parts.length} parts are shown.</p>}
    </div>
  );
}

interface PartProps {
  part: MultipartPart;
  index: number;
  renderBody: RenderBody;
}

/** Its content is decoded when it is opened: that of the short fields of a form at first. */
function Part({ part, index, renderBody }: PartProps) {
  const { name, fileName, headers, bytes, isCut } = part;
  const [isOpen, setOpen] = useState(
    fileName === null && bytes.length <= OPEN_MAX_BYTES && index < OPEN_PARTS_MAX,
  );
  return (
    <details className="part" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <strong>
          <LongText text={name ?? `Part ${index + 1}`} maxChars={TITLE_SHOWN_CHARS} />
        </strong>{" "}
        {fileName !== null && (
          <>
            <LongText text={fileName} maxChars={TITLE_SHOWN_CHARS} />{" "}
          </>
        )}
        <span className="hint">
          {formatBytes(bytes.length)}
          {isCut && ", cut"}
        </span>
      </summary>
      {isOpen && (
        <>
          <FieldTable
            caption={`Headers of part ${index + 1}`}
            rows={Object.entries(headers).map(([key, value]) => ({ name: key, value }))}
          />
          {renderBody({
            name: `Part ${index + 1}`,
            fileName: `part-${index + 1}`,
            bytes,
            contentType: headers["content-type"] ?? "text/plain",
            isCut,
          })}
        </>
      )}
    </details>
  );
}
