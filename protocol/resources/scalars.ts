/** What the resources are put together from. */
import { z } from "zod";
import { LIST_MAX_ROWS } from "../limits.ts";
import { LABEL } from "../names.ts";

export const Instant = z.iso.datetime();
export const Label = z
  .string()
  .regex(LABEL, "must be lower-case letters, digits and inner hyphens");

/** A line of text that a person chose: shown, never interpreted. */
export const Line = (maxChars: number) =>
  z
    .string()
    .trim()
    .min(1)
    .max(maxChars)
    .regex(/^[^\p{Cc}]*$/u, "must not contain control characters");

/** The one path parameter of most routes. */
export const Id = z.object({ id: z.uuid() });
export const Ok = z.object({ ok: z.literal(true) });

export const PageQuery = z.object({
  limit: z.coerce.number().int().min(1).max(LIST_MAX_ROWS).default(LIST_MAX_ROWS),
  after: z.uuid().optional(),
});
