/** Normalization of email addresses, so that each mailbox has one spelling. */
import { z } from "zod";
import { toNfkc } from "../../../shared/text/nfkc.ts";
import { EMAIL_MAX_CHARS } from "../../../protocol/limits.ts";
import { EMAIL } from "../../../protocol/schemas/scalars.ts";

const Address = z.email({ pattern: EMAIL }).max(EMAIL_MAX_CHARS);

const IS_ASCII = /^[\0-\x7f]*$/;

/** NFKC and lower case, with A-labels in the domain, and without the spaces that pasting adds. */
export function normalizeEmail(email: string): string {
  const text = toNfkc(email).trim().toLowerCase();
  const [name, domain] = splitEmail(text);
  if (name === "" || IS_ASCII.test(domain)) return text;
  return name + (normalizeEmailDomain(domain) ?? domain);
}

/** @returns the part up to the last `@`, which is "" in a text without one, and the domain. */
export function splitEmail(email: string): [string, string] {
  const end = email.lastIndexOf("@") + 1;
  return [email.slice(0, end), email.slice(end)];
}

/**
 * A domain in any script with A-labels, for addresses that are not typed by a person.
 *
 * @returns the domain unchanged where another letter stands for one of ASCII, as full-width ones do: no address has it.
 */
export function toALabels(domain: string): string {
  if (IS_ASCII.test(domain)) return domain;
  const labels = domain.toLowerCase().split(".");
  const normalized = normalizeEmailDomain(domain) ?? "";
  const converted = normalized.split(".");
  const isUnambiguous =
    labels.length === converted.length &&
    labels.every((label, at) => IS_ASCII.test(label) || converted[at]!.startsWith("xn--"));
  return isUnambiguous ? normalized : domain;
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
