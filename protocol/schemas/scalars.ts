/** Schemas that several resources share. */
import { z } from "zod";
import { LIST_MAX_ROWS } from "../limits.ts";
import { LABEL, LABEL_MESSAGE } from "../names.ts";

export const Instant = z.iso.datetime();
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

/** A line of text that a user chose: displayed, never interpreted. */
export const SingleLineText = (maxChars: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(maxChars)
    .regex(...ONE_LINE_RULE);

/** As `SingleLineText`, without invisible characters, which could make it look like another text. */
export const VisibleLine = (maxChars: number) =>
  SingleLineText(maxChars).refine((text) => !/\p{Cf}/u.test(text), {
    error: "must not contain invisible formatting characters",
  });

/** A name that mails show to people outside: mail programs turn everything that looks like a web address into a link. */
export const NameInMails = (maxChars: number) =>
  VisibleLine(maxChars).refine((name) => !WEB_ADDRESS.test(name.normalize("NFKC")), {
    error: "must not contain a web address or an email address",
  });

const WEB_ADDRESS = /:\/\/|\bwww\.|[\p{L}\p{N}-][.\u3002]\p{L}{2,}|@/iu;

/** The one path parameter of most routes. */
export const IdParams = z.object({ id: z.uuid() });
export const Ok = z.object({ ok: z.literal(true) });

export const PageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(LIST_MAX_ROWS).default(LIST_MAX_ROWS),
  after: z.uuid().optional(),
});
