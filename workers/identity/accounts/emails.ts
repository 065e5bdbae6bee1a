/** One mailbox, one spelling. */
import { z } from "zod";
import { EMAIL_MAX_CHARS } from "../../../protocol/limits.ts";

const Address = z.email().max(EMAIL_MAX_CHARS);

/** NFKC and lower case, without the spaces that pasting adds. */
export function normalizeEmail(email: string): string {
  return email.normalize("NFKC").trim().toLowerCase();
}

/** As it stands behind the `@` of addresses: lower case, A-labels. @returns null when it is none. */
export function normalizeEmailDomain(typed: string): string | null {
  const text = typed.normalize("NFKC").trim();
  // These would be other parts of a URL, or be decoded to something that is not what was written.
  if (/[\s/\\:?#@%[\]]/.test(text)) return null;
  const domain = URL.parse(`http://${text}`)?.hostname.replace(/\.$/, "") ?? "";
  return isEmailAddress(`a@${domain}`) ? domain : null;
}

/** Nothing but ASCII is one, so that what passes before it is normalised is the same mailbox after. */
export function isEmailAddress(email: string): boolean {
  return Address.safeParse(email).success;
}
