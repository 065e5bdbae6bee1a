/** The selected value of a JSON tree: its path, its whole text, and what the text contains. */
import { useState } from "react";
import { fromBase64 } from "../../../../../shared/bytes.ts";
import { Button } from "../../../../ui/button.tsx";
import { CopyButton } from "../../../../ui/copy.tsx";
import { isContainer } from "../../decode/json/json.ts";
import { formatJson } from "../../decode/json/json-format.ts";
import { formatJsonPath, type TreeRow } from "../../decode/json/json-tree-rows.ts";
import { LongText } from "../long-text.tsx";
import { PreciseTime } from "../precise-time.tsx";
import { JsonWebTokenDetails } from "../json-web-token-details.tsx";
import type { RenderBody } from "./nested-body.ts";

const PATH_SHOWN_CHARS = 300;
const VALUE_SHOWN_CHARS = 4_000;
/** A shorter text is rarely base64. */
const BASE64_MIN_CHARS = 16;

interface JsonSelectionProps {
  row: TreeRow;
  renderBody: RenderBody;
}

export function JsonSelection({ row, renderBody }: JsonSelectionProps) {
  const { value } = row;
  const path = formatJsonPath(row);
  return (
    <div className="selection">
      <div className="selection-path">
        <code>
          <LongText text={path} maxChars={PATH_SHOWN_CHARS} />
        </code>
        <CopyButton text={path} label="Copy path" kind="quiet">
          Copy path
        </CopyButton>
        <CopyButton
          text={() => (isContainer(value) ? formatJson(value) : value.text)}
          label="Copy value"
          kind="quiet"
        >
          Copy value
        </CopyButton>
      </div>
      {!isContainer(value) && (
        <>
          <div className="selection-text">
            <LongText text={value.text} maxChars={VALUE_SHOWN_CHARS} />
          </div>
          {value.kind === "number" && <Timestamp digits={value.text} />}
          {value.kind === "string" && <JsonWebTokenDetails text={value.text} />}
          {value.kind === "string" && <Base64Text text={value.text} renderBody={renderBody} />}
        </>
      )}
    </div>
  );
}

/** Seconds or milliseconds since 1970, of the years 2001 to 2286. */
function Timestamp({ digits }: { digits: string }) {
  if (!/^[1-9]\d{9}(?:\d{3})?$/.test(digits)) return null;
  const ms = digits.length === 10 ? Number(digits) * 1000 : Number(digits);
  return (
    <p className="hint">
      As a time: <PreciseTime timestamp={new Date(ms).toISOString()} />
    </p>
  );
}

function Base64Text({ text, renderBody }: { text: string; renderBody: RenderBody }) {
  const [isDecoded, setDecoded] = useState(false);
  const isCandidate = text.length >= BASE64_MIN_CHARS && /^[\w+/-]+={0,2}$/.test(text);
  const bytes = isCandidate ? fromBase64(text) : null;
  if (bytes === null) return null;
  if (!isDecoded) return <Button onClick={() => setDecoded(true)}>Decode base64</Button>;
  return renderBody({
    name: "Decoded value",
    fileName: "value",
    bytes,
    contentType: undefined,
    isCut: false,
  });
}
