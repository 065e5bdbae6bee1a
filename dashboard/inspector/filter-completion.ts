/** The completions at the caret of a filter: fields, and values that the listed requests have. */
import type { CaptureFilterField } from "../../protocol/captures/filter.ts";
import type { CaptureSummary } from "../../protocol/schemas/inspector/captures.ts";
import { decodeLetters } from "../../shared/text/percent-encoding.ts";
import { findTermAt, formatFilterTerm, type FilterTerm } from "./filter-text.ts";

const SUGGESTIONS_MAX = 10;
/** Longer values are not suggested. */
const VALUE_MAX_CHARS = 80;

interface FieldHelp {
  hint: string;
  /** Values that can always be written. */
  values: readonly string[];
  /** The value that a request has. */
  read?: (capture: CaptureSummary) => string | number | null | undefined;
}

const FIELD_HELP: Record<CaptureFilterField, FieldHelp> = {
  method: { hint: "GET, POST, …", values: [], read: ({ method }) => method },
  status: {
    hint: "404, 5xx, 400-499, >=500",
    values: ["2xx", "3xx", "4xx", "5xx", ">=400"],
    read: ({ status }) => status,
  },
  path: {
    hint: "a part of the path, or all of it with *",
    values: [],
    read: ({ path }) => decodeLetters(path),
  },
  query: {
    hint: "a part of the query, or all of it with *",
    values: [],
    read: ({ query }) => query && decodeLetters(query),
  },
  duration: { hint: ">200ms, <=1.5s, >1m", values: [">200ms", ">1s", ">10s"] },
  size: { hint: ">10kB, <=1MB", values: [">10kB", ">100kB", ">1MB"] },
  kind: { hint: "http, websocket, sse", values: ["http", "websocket", "sse"] },
  state: {
    hint: "open, complete, aborted, failed, refused",
    values: ["open", "complete", "aborted", "failed", "refused"],
  },
  ip: { hint: "the address of the visitor", values: [], read: ({ client_ip: ip }) => ip },
  error: {
    hint: "an error code, such as agent_offline",
    values: [],
    read: ({ error }) => error,
  },
};

export interface Suggestion {
  /** Replaces the term. */
  text: string;
  hint: string;
}

export interface Completion {
  term: FilterTerm;
  suggestions: Suggestion[];
}

/** @param rows whose values are suggested. */
export function completeFilter(
  filter: string,
  caret: number,
  rows: readonly CaptureSummary[],
): Completion {
  const term = findTermAt(filter, caret);
  const minus = term.text.startsWith("-") ? "-" : "";
  const body = term.text.slice(minus.length);
  const colon = body.indexOf(":");
  const field = body.slice(0, Math.max(0, colon)).toLowerCase();
  const suggestions = isField(field)
    ? suggestValues(field, body.slice(colon + 1), rows)
    : colon < 0
      ? suggestFields(body.toLowerCase())
      : [];
  return {
    term,
    suggestions: suggestions.map(({ text, hint }) => ({ text: minus + text, hint })),
  };
}

/** Replaces the term. After a complete one, a space follows. */
export function applySuggestion(filter: string, { start, end }: FilterTerm, text: string) {
  const rest = filter.slice(end).trimStart();
  const before = filter.slice(0, start) + text;
  const caret = text.endsWith(":") ? before.length : before.length + 1;
  return { filter: text.endsWith(":") && rest === "" ? before : `${before} ${rest}`, caret };
}

function suggestFields(typed: string): Suggestion[] {
  return Object.entries(FIELD_HELP)
    .filter(([name]) => name.startsWith(typed))
    .map(([name, { hint }]) => ({ text: `${name}:`, hint }));
}

/** The values that most of the rows have come first. */
function suggestValues(
  field: CaptureFilterField,
  value: string,
  rows: readonly CaptureSummary[],
): Suggestion[] {
  const comma = value.lastIndexOf(",");
  const before = value.slice(0, comma + 1);
  const typed = value
    .slice(comma + 1)
    .replaceAll('"', "")
    .toLowerCase();
  const { read, values } = FIELD_HELP[field];
  const counts = new Map<string, number>();
  for (const row of rows) {
    const found = String(read?.(row) ?? "");
    if (found !== "" && found.length <= VALUE_MAX_CHARS) {
      counts.set(found, (counts.get(found) ?? 0) + 1);
    }
  }
  const seen = [...counts].sort(([, one], [, other]) => other - one).map(([found]) => found);
  return [...new Set([...seen, ...values])]
    .filter((each) => each.toLowerCase().includes(typed) && each.toLowerCase() !== typed)
    .slice(0, SUGGESTIONS_MAX)
    .map((each) => ({
      text: formatFilterTerm(field, each).replace(":", `:${before}`),
      hint: counts.has(each) ? `${counts.get(each)} listed` : "",
    }));
}

function isField(name: string): name is CaptureFilterField {
  return Object.hasOwn(FIELD_HELP, name);
}
