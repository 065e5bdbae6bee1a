/**
 * The message of each zod issue that a schema gives no message of its own. Every message continues the name of the
 * field that it is about: `name` "must have at most 100 characters".
 */
import type { z } from "zod";

type RawIssue = z.core.$ZodRawIssue;
type Issue<Code> = Extract<RawIssue, { code: Code }>;

/** Each program that shows issues to a person sets it once, with `z.config({ customError: describeIssue })`. */
export function describeIssue(issue: RawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? "is required" : `must be ${describeType(issue.expected)}`;
    case "invalid_value":
      return issue.input === undefined ? "is required" : describeValues(issue.values);
    case "too_big":
      return describeMaximum(issue);
    case "too_small":
      return describeMinimum(issue);
    case "invalid_format":
      return describeFormat(issue);
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "unrecognized_keys":
      return `has ${issue.keys.length === 1 ? "an unknown field" : "unknown fields"}: ${issue.keys.join(", ")}`;
    case "invalid_union":
      return describeUnion(issue);
    case "invalid_key":
      return issue.issues[0]?.message ?? "has an invalid name";
    case "invalid_element":
      return `has an invalid entry: ${issue.issues[0]?.message ?? "is not valid"}`;
    case "custom":
      return "is not valid";
  }
}

/** `actions[2].path_prefix`. */
export function formatPath(path: PropertyKey[]): string {
  return path
    .map((part) => (typeof part === "number" ? `[${part}]` : `.${String(part)}`))
    .join("")
    .replace(/^\./, "");
}

const TYPE_NAMES: Record<string, string> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  bigint: "a whole number",
  boolean: "true or false",
  array: "an array",
  tuple: "an array",
  set: "a set",
  object: "an object",
  record: "an object",
  map: "a map",
  date: "a date",
  null: "null",
};

function describeType(expected: string): string {
  return TYPE_NAMES[expected] ?? `of type ${expected}`;
}

function describeValues(values: readonly unknown[]): string {
  const texts = values.map(String);
  return texts.length === 1 ? `must be ${texts[0]}` : `must be one of: ${texts.join(", ")}`;
}

const UNITS: Record<string, [one: string, many: string]> = {
  string: ["character", "characters"],
  array: ["item", "items"],
  set: ["item", "items"],
  map: ["entry", "entries"],
  record: ["entry", "entries"],
  file: ["byte", "bytes"],
};

/** `at most 100 characters`; null for numbers and dates, which have no size. */
function describeSize(origin: string, comparison: string, size: number | bigint): string | null {
  const [one, many] = UNITS[origin] ?? [];
  if (one === undefined) return null;
  return `must have ${comparison} ${size} ${Number(size) === 1 ? one : many}`;
}

function describeMaximum({ origin, maximum, exact, inclusive }: Issue<"too_big">): string {
  if (exact) return describeSize(origin, "exactly", maximum) ?? `must be ${maximum}`;
  const comparison = inclusive === false ? "less than" : "at most";
  return describeSize(origin, comparison, maximum) ?? `must be ${comparison} ${maximum}`;
}

function describeMinimum({ origin, minimum, exact, inclusive }: Issue<"too_small">): string {
  if (exact) return describeSize(origin, "exactly", minimum) ?? `must be ${minimum}`;
  const isSized = origin in UNITS;
  if (isSized && inclusive !== false && Number(minimum) === 1) return "must not be empty";
  const comparison = inclusive === false ? "more than" : "at least";
  return describeSize(origin, comparison, minimum) ?? `must be ${comparison} ${minimum}`;
}

const FORMAT_NAMES: Record<string, string> = {
  email: "an email address",
  url: "a URL",
  uuid: "a UUID",
  datetime: "an RFC 3339 date and time such as 2026-01-31T12:00:00Z",
  date: "a date such as 2026-01-31",
  time: "a time such as 12:00:00",
  duration: "an ISO 8601 duration such as PT1H",
  ipv4: "an IPv4 address",
  ipv6: "an IPv6 address",
  cidrv4: "an IPv4 block such as 203.0.113.0/24",
  cidrv6: "an IPv6 block such as 2001:db8::/32",
  base64: "base64 with padding",
  base64url: "base64url without padding",
  json_string: "JSON",
  jwt: "a JSON Web Token",
  lowercase: "lower case",
  uppercase: "upper case",
};

function describeFormat(issue: Issue<"invalid_format">): string {
  switch (issue.format) {
    case "starts_with":
      return `must start with "${String(issue.prefix)}"`;
    case "ends_with":
      return `must end with "${String(issue.suffix)}"`;
    case "includes":
      return `must contain "${String(issue.includes)}"`;
    default: {
      const name = FORMAT_NAMES[issue.format];
      return name === undefined ? "has the wrong format" : `must be ${name}`;
    }
  }
}

function describeUnion(issue: Issue<"invalid_union">): string {
  if (Array.isArray(issue.options)) return describeValues(issue.options);
  const branches = issue.errors.map(([first]) => first);
  // An issue inside a branch is about a field of that branch, which the caller may not have meant.
  if (branches.length === 0 || branches.some((first) => first?.path.length !== 0)) {
    return "is not valid";
  }
  return [...new Set(branches.map((first) => first?.message))].join(", or ");
}
