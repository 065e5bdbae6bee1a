/** What a mail server's refusal of a recipient means for the mail. */

/** How the gateway of a self-hosted server says that it was refused for good. */
export const MAIL_REFUSED_STATUS = 422;

/**
 * For good: the address is wrong, or takes no mail. Other refusals are of the server's own making (it wants
 * a password, it relays for nobody, it is full), and may be over tomorrow: RFC 3463 has their classes.
 */
export function isRefusedForGood(reply: string): boolean {
  const [, code = "", detail] = /^(\d{3})[ -](?:(\d\.\d{1,3})\.\d{1,3}\b)?/.exec(reply) ?? [];
  if (detail !== undefined) return detail === "5.1" || detail === "5.2";
  return code === "550" || code === "551" || code === "553";
}
