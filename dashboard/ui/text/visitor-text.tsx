/** A short text of a visitor, or of anyone else who may be hostile. */

/** Control characters, and those that change the writing direction. */
const INVISIBLE = /([\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069])/;

interface VisitorTextProps {
  text: string;
  className?: string;
  /** By default, that of the first letter. The parts of a path stay in their order from left to right. */
  dir?: "ltr";
  /** Shown while the pointer is over the text. */
  title?: string;
}

/** Characters that would hide or reorder the others are shown by their numbers. */
export function VisitorText({ text, ...attributes }: VisitorTextProps) {
  const parts = text.split(INVISIBLE);
  return (
    <bdi {...attributes}>
      {parts.map((part, index) =>
        index % 2 === 0 ? part : <Invisible key={index} character={part} />,
      )}
    </bdi>
  );
}

function Invisible({ character }: { character: string }) {
  return (
    <span className="invisible" title="A character that is not visible">
      {formatCodePoint(character)}
    </span>
  );
}

/** The same as a plain text, for where elements can't be. */
export function showInvisible(text: string): string {
  return text
    .split(INVISIBLE)
    .map((part, index) => (index % 2 === 0 ? part : formatCodePoint(part)))
    .join("");
}

function formatCodePoint(character: string): string {
  return `U+${character.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
}
