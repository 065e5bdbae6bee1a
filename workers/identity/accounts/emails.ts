/** Normalization of email addresses, so that each mailbox has one spelling. */
import { z } from "zod";
import { toNfkc } from "../../../shared/text/nfkc.ts";
import { EMAIL_MAX_CHARS } from "../../../protocol/limits.ts";

const Address = z.email().max(EMAIL_MAX_CHARS);

/** NFKC and lower case, without the spaces that pasting adds. */
export function normalizeEmail(email: string): string {
  return toNfkc(email).trim().toLowerCase();
}

/** The domain as in normalized addresses: lower case, A-labels. @returns null when it is not a valid domain. */
export function normalizeEmailDomain(typed: string): string | null {
  const text = toNfkc(typed).trim();
  // The URL parser would read these as other parts of a URL, or decode them.
  if (/[\s/\\:?#@%[\]]/.test(text)) return null;
  const domain = URL.parse(`http://${text}`)?.hostname.replace(/\.$/, "") ?? "";
  return isEmailAddress(`a@${domain}`) ? domain : null;
}

/** Accepts ASCII only, so that normalizing an accepted address never changes its mailbox. */
export function isEmailAddress(email: string): boolean {
  return Address.safeParse(email).success;
}
