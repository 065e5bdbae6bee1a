/** Changes to the text of a filter (protocol/captures/filter.ts), for buttons and for the completion while the user types. */
import type { CaptureFilterField } from "../../protocol/captures/filter.ts";

/** A term of the filter with its position. */
export interface FilterTerm {
  start: number;
  end: number;
  text: string;
}

/** Splits at spaces outside of quotation marks, even while the last quotation mark is still missing. */
function splitFilter(text: string): FilterTerm[] {
  return [...text.matchAll(/(?:"[^"]*(?:"|$)|[^\s"])+/g)].map(({ 0: term, index }) => ({
    start: index,
    end: index + term.length,
    text: term,
  }));
}

/** The term in which the caret is, or an empty one between two terms. */
export function findTermAt(text: string, caret: number): FilterTerm {
  const found = splitFilter(text).find(({ start, end }) => start <= caret && caret <= end);
  return found ?? { start: caret, end: caret, text: "" };
}

/** Encloses a value in quotation marks if it needs them. The language has no way to write a quotation mark. */
export function formatFilterTerm(field: CaptureFilterField, value: string): string {
  const text = value.replaceAll('"', "*");
  return /[\s,]/.test(text) ? `${field}:"${text}"` : `${field}:${text}`;
}

/** Adds a term, unless the filter has it. */
export function addTerm(filter: string, term: string): string {
  const terms = splitFilter(filter).map(({ text }) => text);
  return terms.includes(term) ? filter : [...terms, term].join(" ");
}

/** The alternatives of the term `field:one,two`. */
export function getAlternatives(filter: string, field: CaptureFilterField): string[] {
  return findFieldTerms(filter, field).flatMap(({ text }) =>
    text
      .slice(field.length + 1)
      .split(",")
      .filter(Boolean),
  );
}

/** Adds an alternative to the term of this field, or removes it. */
export function toggleAlternative(
  filter: string,
  field: CaptureFilterField,
  value: string,
): string {
  const known = getAlternatives(filter, field);
  const alternatives = known.includes(value)
    ? known.filter((each) => each !== value)
    : [...known, value];
  const replaced = new Set(findFieldTerms(filter, field).map(({ start }) => start));
  const others = splitFilter(filter).filter(({ start }) => !replaced.has(start));
  const term = alternatives.length > 0 ? [`${field}:${alternatives.join(",")}`] : [];
  return [...others.map(({ text }) => text), ...term].join(" ");
}

function findFieldTerms(filter: string, field: CaptureFilterField): FilterTerm[] {
  return splitFilter(filter).filter(({ text }) => text.startsWith(`${field}:`));
}
