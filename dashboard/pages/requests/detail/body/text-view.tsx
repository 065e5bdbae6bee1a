/** Text with line numbers. */
import { useMemo } from "react";
import { formatCount } from "../../../../ui/numbers.ts";
import { VisitorText } from "../../../../ui/text/visitor-text.tsx";
import { WindowedRows } from "../../../../ui/text/windowed-rows.tsx";
import { decodeText } from "../../decode/text.ts";
import { PIECES_MAX, splitIntoPieces, type TextPieces } from "../../decode/text-pieces.ts";

const ROW_HEIGHT_PX = 20;

interface TextViewProps {
  name: string;
  bytes: Uint8Array;
  charset: string | undefined;
}

export function TextView({ name, bytes, charset }: TextViewProps) {
  const decoded = useMemo(() => decodeText(bytes, charset), [bytes, charset]);
  return (
    <>
      {decoded.unknownCharset !== null && (
        <p className="hint">
          The encoding “<bdi>{decoded.unknownCharset}</bdi>” is unknown: read as UTF-8.
        </p>
      )}
      {decoded.hasInvalidBytes && (
        <p className="hint">Some bytes are not valid {decoded.encoding}: they are shown as �.</p>
      )}
      <TextLines name={name} text={decoded.text} />
    </>
  );
}

/** @param marked the number of a line that is marked and scrolled to. */
export function TextLines({ name, text, marked }: { name: string; text: string; marked?: number }) {
  const pieces = useMemo(() => splitIntoPieces(text), [text]);
  return (
    <>
      <WindowedRows
        className="code-box"
        role="region"
        aria-label={`${name} as text`}
        count={pieces.count}
        rowHeight={ROW_HEIGHT_PX}
        isMeasured
        activeIndex={marked === undefined ? undefined : findPiece(pieces, marked)}
        renderRow={(index) => {
          const { lineNumber, text: line } = pieces.get(index);
          return (
            <div className={lineNumber !== null && lineNumber === marked ? "line marked" : "line"}>
              <span className="line-number" aria-hidden="true">
                {lineNumber}
              </span>
              <VisitorText text={line === "" ? "\u00a0" : line} />
            </div>
          );
        }}
      />
      {pieces.isCut && (
        <p className="hint">
          Only the first {formatCount(PIECES_MAX)} lines are shown. Download the body to see all.
        </p>
      )}
    </>
  );
}

function findPiece(pieces: TextPieces, line: number): number {
  for (let index = Math.min(line - 1, pieces.count - 1); index < pieces.count; index += 1) {
    if (pieces.get(index).lineNumber === line) return index;
  }
  return Math.max(0, pieces.count - 1);
}
