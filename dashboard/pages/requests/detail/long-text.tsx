/** A text that a visitor sent, of any length and writing direction. */
import { useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { formatCount } from "../../../ui/numbers.ts";
import { VisitorText } from "../../../ui/text/visitor-text.tsx";

const SHOWN_CHARS = 1_000;
/** Not even "Show all" shows more; the copy button has the whole text. */
const SHOWN_MAX_CHARS = 50_000;

export function LongText({ text, maxChars = SHOWN_CHARS }: { text: string; maxChars?: number }) {
  const [isExpanded, setExpanded] = useState(false);
  const shownChars = isExpanded ? SHOWN_MAX_CHARS : maxChars;
  if (text.length <= shownChars) return <VisitorText text={text} />;
  return (
    <>
      <VisitorText text={`${text.slice(0, shownChars).toWellFormed()}…`} />{" "}
      {isExpanded ? (
        <span className="hint">{formatCount(text.length)} characters</span>
      ) : (
        <Button kind="link" onClick={() => setExpanded(true)}>
          Show all {formatCount(text.length)} characters
        </Button>
      )}
    </>
  );
}
