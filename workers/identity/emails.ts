/** One mailbox, one spelling. */

/** NFKC and lower case, without the spaces that pasting adds. */
export function normalizeEmail(email: string): string {
  return email.normalize("NFKC").trim().toLowerCase();
}
