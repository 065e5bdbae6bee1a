/** One mailbox, one spelling. */
import { z } from "zod";
import { EMAIL_MAX_CHARS } from "../../protocol/limits.ts";

const Address = z.email().max(EMAIL_MAX_CHARS);

/** NFKC and lower case, without the spaces that pasting adds. */
export function normalizeEmail(email: string): string {
  return email.normalize("NFKC").trim().toLowerCase();
}

/** Nothing but ASCII is one, so that what passes before it is normalised is the same mailbox after. */
export function isEmailAddress(email: string): boolean {
  return Address.safeParse(email).success;
}
