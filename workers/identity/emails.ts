/** One mailbox, one spelling. */
import { z } from "zod";
import { EMAIL_MAX_CHARS } from "../../protocol/limits.ts";

const Address = z.email().max(EMAIL_MAX_CHARS);

/** NFKC and lower case, without the spaces that pasting adds. */
export function normalizeEmail(email: string): string {
  return email.normalize("NFKC").trim().toLowerCase();
}

/** Of a normalised one. */
export function isEmailAddress(email: string): boolean {
  return Address.safeParse(email).success;
}
