/** A text of a visitor: of any length, in any writing direction. */
import { useState } from "react";
import { Button } from "../../../ui/button.tsx";
import { formatCount } from "../../../ui/numbers.ts";

const SHOWN_CHARS = 1_000;
/** Even when the user asks for all: the copy button has the whole text. */
const SHOWN_MAX_CHARS = 50_000;

export function LongText({ text, maxChars = SHOWN_CHARS }: { text: string; maxChars?: number }) {
  const [isLong, setLong] = useState(false);
  const shownChars = isLong ? SHOWN_MAX_CHARS : maxChars;
  if (text.length <= shownChars) return <VisitorText text={text} />;
  return (
    <>
      <VisitorText text={`${text.slice(0, shownChars).toWellFormed()}…`} />{" "}
      {isLong ? (
        <span className="hint">{formatCount(text.length)} characters</span>
      ) : (
        <Button kind="link" onClick={() => setLong(true)}>
          Show all {formatCount(text.length)} characters
        </Button>
      )}
    </>
  );
}

/** Control characters, and those that change the writing direction. */
const INVISIBLE = /([\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069])/;

/** Characters that would hide or reorder the others are shown by their numbers. */
export function VisitorText({ text }: { text: string }) {
  const parts = text.split(INVISIBLE);
  return (
    <bdi>
      {parts.map((part, index) =>
        index % 2 === 0 ? part : <Invisible key={index} character={part} />,
      )}
    </bdi>
  );
}

function Invisible({ character }: { character: string }) {
  const digits = character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0");
  return (
    <span className="invisible" title="A character that is not visible">
      U+{digits}
    </span>
  );
}
