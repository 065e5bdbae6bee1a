/**
 * The filter language of captured requests, which the command line, the agent's screen and the dashboard share:
 *
 *     method:POST status:>=500 -path:/health duration:>1s text
 *
 * A request is shown when all terms, separated by spaces, match it. A minus before a term negates it, a comma separates
 * alternatives, and quotation marks enclose a value with spaces. A term without a field is a text that is searched in the
 * method, the path with the query, the visitor's address and the error.
 */
import { decodeLetters } from "../../shared/text/percent-encoding.ts";
import { joinTarget } from "../request-target.ts";
import { matchesWildcard } from "../../shared/text/wildcard.ts";
import type { CaptureSummary } from "../schemas/inspector/captures.ts";
import { INSPECTOR_PATH_MAX_CHARS } from "../limits.ts";

const FILTER_MAX_CHARS = 2_000;

/** The filter can't be parsed. The message names the term, and says what is accepted. */
export class CaptureFilterError extends Error {
  override name = "CaptureFilterError";
}

/** The fields of a request that a filter reads. */
export type FilteredRequest = Pick<
  CaptureSummary,
  | "method"
  | "status"
  | "path"
  | "query"
  | "duration_ms"
  | "request_size"
  | "response_size"
  | "kind"
  | "state"
  | "client_ip"
  | "error"
> & {
  /** Where a term without a field is searched, too. */
  otherText?: string;
};

type Matcher = (request: FilteredRequest) => boolean;

interface Term {
  field: CaptureFilterField | undefined;
  alternatives: string[];
  isNegated: boolean;
}

/** The part of a filter that `GET /inspector` supports. Every request that matches the filter matches this query. */
export interface CaptureFilterQuery {
  method?: string;
  status?: string;
  path?: string;
}

export interface CaptureExpression {
  matches: Matcher;
  query: CaptureFilterQuery;
  /** Those that its terms name. */
  fields: CaptureFilterField[];
}

/** Builds the matcher of one alternative of a field. @throws CaptureFilterError */
const FIELDS = {
  method: (text: string): Matcher => {
    const method = text.toUpperCase();
    return (capture) => capture.method.toUpperCase() === method;
  },
  status: parseStatus,
  path: (text: string): Matcher => {
    const matches = parsePattern(text);
    return ({ path }) => getForms(path, text).some(matches);
  },
  query: (text: string): Matcher => {
    const matches = parsePattern(text);
    return ({ query }) => getForms(query ?? "", text).some(matches);
  },
  duration: (text: string): Matcher => {
    const isInRange = parseComparison(text, parseMs, "a duration such as >200ms, <=1.5s or >1m");
    return ({ duration_ms: ms }) => ms !== null && isInRange(ms);
  },
  size: (text: string): Matcher => {
    const isInRange = parseComparison(text, parseBytes, "a size such as >500, >10kB or <=1MB");
    return ({ request_size: sent, response_size: received }) => isInRange(sent + received);
  },
  kind: (text: string): Matcher => {
    const kind = chooseFrom(["http", "websocket", "sse"], text, "kind");
    return (capture) => capture.kind === kind;
  },
  state: (text: string): Matcher => {
    const states = ["open", "complete", "aborted", "failed", "refused"];
    const state = chooseFrom(states, text, "state");
    return (capture) => capture.state === state;
  },
  ip: (text: string): Matcher => {
    return (capture) => capture.client_ip === text.toLowerCase();
  },
  error: (text: string): Matcher => {
    return ({ error }) => error === text.toLowerCase();
  },
} as const satisfies Record<string, (text: string) => Matcher>;
export type CaptureFilterField = keyof typeof FIELDS;

/** An empty filter matches every request. @throws CaptureFilterError */
export function parseCaptureFilter(text: string): CaptureExpression {
  if (text.length > FILTER_MAX_CHARS) {
    throw new CaptureFilterError(`a filter has at most ${FILTER_MAX_CHARS} characters`);
  }
  const terms = splitTerms(text).map(parseTerm);
  const matchers = terms.map(toMatcher);
  return {
    matches: (capture) => matchers.every((matches) => matches(capture)),
    query: toQuery(terms),
    fields: terms.flatMap(({ field }) => field ?? []),
  };
}

/** Splits at spaces outside of quotation marks. The marks are kept, because a colon between them ends no field's name. */
function splitTerms(text: string): string[] {
  if ((text.match(/"/g)?.length ?? 0) % 2 !== 0) {
    throw new CaptureFilterError('a quotation mark is missing: every " needs a second one');
  }
  return text.match(/(?:"[^"]*"|[^\s"])+/g) ?? [];
}

function parseTerm(text: string): Term {
  const isNegated = text.length > 1 && text.startsWith("-");
  const body = isNegated ? text.slice(1) : text;
  const [, name, value] = /^([a-z]+):(.*)$/is.exec(body) ?? [];
  if (name === undefined || value === undefined) {
    return { field: undefined, alternatives: [body.replaceAll('"', "")], isNegated };
  }
  const field = name.toLowerCase();
  if (!isField(field)) {
    const known = Object.keys(FIELDS).join(", ");
    throw new CaptureFilterError(
      `${text}: there is no field ${name}; the fields are ${known} (to search for this text, quote it: "${body}")`,
    );
  }
  const alternatives = (value.match(/(?:"[^"]*"|[^,"])+/g) ?? []).map((part) =>
    part.replaceAll('"', ""),
  );
  if (alternatives.length === 0) {
    throw new CaptureFilterError(`${text}: the value after ${field}: is missing`);
  }
  return { field, alternatives, isNegated };
}

function isField(name: string): name is CaptureFilterField {
  return Object.hasOwn(FIELDS, name);
}

function toMatcher({ field, alternatives, isNegated }: Term): Matcher {
  const matchers = alternatives.map(field === undefined ? parseText : FIELDS[field]);
  return (capture) => matchers.some((matches) => matches(capture)) !== isNegated;
}

function parseText(text: string): Matcher {
  const wanted = text.toLowerCase();
  return ({ method, path, query, client_ip: ip, error, otherText }) =>
    [method, ...getForms(joinTarget(path, query), text), ip, error ?? "", otherText ?? ""].some(
      (part) => part.toLowerCase().includes(wanted),
    );
}

/** A path or query as it was sent and, if the searched text has letters beyond ASCII, also with such letters decoded. */
function getForms(sent: string, searched: string): string[] {
  return /[\u0080-\uffff]/.test(searched) ? [sent, decodeLetters(sent)] : [sent];
}

/** A part of the value; with `*`, which stands for any characters, the whole value. */
function parsePattern(text: string): (value: string) => boolean {
  if (!text.includes("*")) return (value) => value.includes(text);
  return (value) => matchesWildcard(text, value);
}

/** `404`, `4xx`, `400-499`, or a comparison such as `>=500`. */
function parseStatus(text: string): Matcher {
  const accepted = "a status such as 404, 4xx, 400-499 or >=500";
  const [, hundreds] = /^([1-5])xx$/i.exec(text) ?? [];
  const [, from, to] = /^(\d{3})-(\d{3})$/.exec(text) ?? [];
  if (hundreds !== undefined) {
    return ({ status }) => status !== null && Math.floor(status / 100) === Number(hundreds);
  }
  if (from !== undefined && to !== undefined) {
    return ({ status }) => status !== null && status >= Number(from) && status <= Number(to);
  }
  const parse = (number: string) => (/^\d{3}$/.test(number) ? Number(number) : undefined);
  const isInRange = parseComparison(text, parse, accepted);
  return ({ status }) => status !== null && isInRange(status);
}

/** `>N`, `>=N`, `<N`, `<=N`, `=N` or `N`. */
function parseComparison(
  text: string,
  parse: (text: string) => number | undefined,
  accepted: string,
): (value: number) => boolean {
  const [, operator = "", operand = ""] = /^(>=|<=|>|<|=)?(.*)$/s.exec(text) ?? [];
  const bound = parse(operand);
  if (bound === undefined) throw new CaptureFilterError(`${text} is not ${accepted}`);
  switch (operator) {
    case ">":
      return (value) => value > bound;
    case ">=":
      return (value) => value >= bound;
    case "<":
      return (value) => value < bound;
    case "<=":
      return (value) => value <= bound;
    default:
      return (value) => value === bound;
  }
}

const UNIT_MS: Record<string, number> = { "": 1, ms: 1, s: 1_000, m: 60_000 };
/** Decimal units, as the sizes of responses are shown. */
const UNIT_BYTES: Record<string, number> = { "": 1, b: 1, kb: 1_000, mb: 1_000_000, gb: 1e9 };

function parseMs(text: string): number | undefined {
  return parseQuantity(text, UNIT_MS);
}

function parseBytes(text: string): number | undefined {
  return parseQuantity(text, UNIT_BYTES);
}

function parseQuantity(text: string, units: Record<string, number>): number | undefined {
  const [, number, unit = ""] = /^(\d+(?:\.\d+)?)([a-z]*)$/i.exec(text) ?? [];
  const factor = units[unit.toLowerCase()];
  return number === undefined || factor === undefined ? undefined : Number(number) * factor;
}

function chooseFrom(known: string[], text: string, field: CaptureFilterField): string {
  const found = known.find((one) => one === text.toLowerCase());
  if (found === undefined) {
    throw new CaptureFilterError(`${text} is not a ${field}; use ${known.join(", ")}`);
  }
  return found;
}

/** A field with several alternatives, a negated one or a range is only checked by `matches`. */
function toQuery(terms: Term[]): CaptureFilterQuery {
  const query: CaptureFilterQuery = {};
  for (const { field, alternatives, isNegated } of terms) {
    const [value = "", ...others] = alternatives;
    if (isNegated || others.length > 0) continue;
    if (field === "method" && /^[a-z]+$/i.test(value)) query.method = value.toUpperCase();
    if (field === "status" && /^[1-5](\d\d|xx)$/i.test(value)) query.status = value.toLowerCase();
    if (field === "path" && !value.includes("*") && isQueryPath(value)) query.path = value;
  }
  return query;
}

/** Longer paths and control characters are refused in a query. */
function isQueryPath(path: string): boolean {
  return path.length > 0 && path.length <= INSPECTOR_PATH_MAX_CHARS && /^[\x20-\x7e]+$/.test(path);
}
