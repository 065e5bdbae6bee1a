/** Schemas that several resources share. */
import { z } from "zod";
import { toNfkc } from "../../shared/text/nfkc.ts";
import { LIST_MAX_ROWS, PASSWORD_MAX_BYTES, PASSWORD_MIN_CHARS } from "../limits.ts";
import { LABEL, LABEL_MESSAGE } from "../names.ts";

/**
 * An id in a request, as PostgreSQL and every answer write it. RFC 9562 §4 allows both cases, and the name of a Durable Object
 * is compared as text.
 */
export const Uuid = z.uuid().toLowerCase();
export const Instant = z.iso.datetime();
/** A time in a request, in any time zone. RFC 3339 §5.6 allows `t` and `z` in lower case. */
export const TypedInstant = z
  .string()
  .toUpperCase()
  .check(z.iso.datetime({ offset: true }));
export const Label = z.string().regex(LABEL, LABEL_MESSAGE);

/** Text that PostgreSQL can store: it rejects NUL in any text, and unpaired surrogates in JSON. */
export const STORABLE_RULE = [
  /^[^\0\p{Cs}]*$/u,
  "must not contain NUL characters or invalid Unicode",
] as const;

/** The same, on one line. */
export const ONE_LINE_RULE = [
  /^[^\p{Cc}\p{Cs}]*$/u,
  "must not contain control characters or invalid Unicode",
] as const;

/** RFC 9110 §5.1. */
export const FIELD_NAME_RULE = [
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/,
  "must be a valid header name",
] as const;

/**
 * A line of text that a user chose: displayed, never interpreted. Invisible characters could make it look like another
 * text. Spaces around it are removed, and count.
 */
export const VisibleLine = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    .regex(/\S/, "must not be empty")
    .regex(...ONE_LINE_RULE)
    .regex(/^[^\p{Cf}\p{Zl}\p{Zp}]*$/u, "must not contain invisible formatting characters")
    .trim();

/** A name that mails show to people outside: mail programs turn everything that looks like a web address into a link. */
export const NameInMails = (maxChars: number) =>
  VisibleLine(maxChars)
    .refine((name) => !WEB_ADDRESS.test(toNfkc(name)), {
      error: "must not contain a web address or an email address",
    })
    .describe("A name for people to read, without a web address or an email address.");

const WEB_ADDRESS = /:\/\/|\bwww\.|[\p{L}\p{N}-][.\u3002]\p{L}{2,}|@/iu;

/** As zod's own pattern, and also below top-level domains that are A-labels, such as `xn--p1ai`. */
export const EMAIL =
  /^(?!\.)(?!.*\.\.)[A-Za-z0-9_'+\-.]*[A-Za-z0-9_+-]@(?:[A-Za-z0-9][A-Za-z0-9-]*\.)+(?:[A-Za-z]{2,}|[Xx][Nn]--[A-Za-z0-9-]*[A-Za-z0-9])$/;

/**
 * An address as it was typed, with spaces around it and in any case. It is checked when it has been normalized; the
 * pattern describes to clients what is valid then.
 */
export const TypedEmail = z
  .string()
  .regex(...STORABLE_RULE)
  .meta({ pattern: `^\\s*${EMAIL.source.slice(1, -1)}\\s*$` });

/** A domain as it was typed, in any script and case. It is checked when it has been converted to A-labels (UTS 46). */
export const TypedDomain = (maxChars: number) =>
  z
    .string()
    .max(maxChars)
    .meta({
      pattern: String.raw`^\s*[^\s/\\:?#@%\[\]]+[.\u3002\uff0e\uff61][^\s/\\:?#@%\[\]]+\s*$`,
    });

/** A code that a person typed: authenticators and mails show codes in groups. */
export const TypedCode = z.string().overwrite((typed) => typed.replace(/\s/g, ""));

/** A token that was copied from a mail, perhaps with spaces around it. */
export const MailedToken = z.string().trim();

/** A new password. It is checked when it has been normalized. */
export const NewPassword = z.string().meta({
  minLength: PASSWORD_MIN_CHARS,
  maxLength: PASSWORD_MAX_BYTES,
  pattern: String.raw`^[^\u0000]*$`,
});

/** For the document: at most one of these fields is given. */
export const atMostOne = (...names: [string, string]) => ({ allOf: [{ not: isGiven(...names) }] });

/** For the document: exactly one of these fields is given. */
export const exactlyOne = (...names: [string, string]) => ({
  allOf: [{ oneOf: names.map((name) => isGiven(name)) }],
});

/** For the document: at least one of these fields is given. */
export const atLeastOne = (...names: [string, string]) => ({
  allOf: [{ anyOf: names.map((name) => isGiven(name)) }],
});

/** For the document: each of these fields is given only together with a value of another field. */
export const onlyWith = (field: string, value: string, ...names: string[]) => ({
  allOf: names.map((name) => ({
    anyOf: [
      { not: isGiven(name) },
      { properties: { [field]: { const: value } }, required: [field] },
    ],
  })),
});

/** A JSON Schema. The linter wants the properties beside their names. */
const isGiven = (...names: string[]) => ({
  properties: Object.fromEntries(names.map((name) => [name, {}])),
  required: names,
});

/** The one path parameter of most routes. */
export const IdParams = z.object({ id: Uuid });
export const Ok = z.object({ ok: z.literal(true) });

/**
 * The bounds are checked first, and alone if one is exceeded: `z.int()` has bounds of its own, those of exact integers, which
 * it would report as well.
 */
export const WholeNumber = (
  min: number,
  max: number,
  params?: Readonly<{ error: z.core.$ZodErrorMap }>,
) => z.number(params).min(min, { abort: true }).max(max, { abort: true }).int(params);

/** A whole number in a query. `Number()` reads `0x10`, `1e2` and text without digits too. */
export const NumberText = (min: number, max: number) =>
  z.preprocess(readDigits, wholeNumber(min, max));

/** The inner default is for the document, which has none of a schema that transforms. */
export const NumberTextOr = (value: number, min: number, max: number) =>
  z.preprocess(readDigits, wholeNumber(min, max).default(value)).default(value);

/** A number in a query that may have decimals, such as `0.5`. */
export const DecimalTextOr = (value: number, min: number, max: number) =>
  z.preprocess(readDecimal, z.number().min(min).max(max).default(value)).default(value);

const readDecimal = (text: unknown) =>
  typeof text === "string" && /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
const readDigits = (text: unknown) =>
  typeof text === "string" && /^-?\d+$/.test(text) ? Number(text) : text;
/** Only of the type: an error of the schema would also replace the messages about its range. */
const notWhole: z.core.$ZodErrorMap = ({ code }) =>
  code === "invalid_type" ? "must be a whole number" : undefined;
const wholeNumber = (min: number, max: number) => WholeNumber(min, max, { error: notWhole });

export const PageQuery = z.object({
  limit: NumberTextOr(LIST_MAX_ROWS, 1, LIST_MAX_ROWS),
  after: Uuid.optional(),
});
