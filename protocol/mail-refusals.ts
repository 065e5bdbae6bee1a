/** What a mail server's refusal of a recipient means for the mail. */

/** How the gateway of a self-hosted server says that it was refused for good. */
export const MAIL_REFUSED_STATUS = 422;

/**
 * For good: the address is wrong, or takes no mail. Other refusals are of the server's own making (it wants
 * a password, it relays for nobody, it is full), and may be over tomorrow: RFC 3463 has their classes.
 */
export function isPermanentRefusal(reply: string): boolean {
  const [, code = "", detail] = /^(\d{3})[ -](?:(\d\.\d{1,3}\.\d{1,3})\b)?/.exec(reply) ?? [];
  if (detail !== undefined) return /^5\.[12]\./.test(detail) && detail !== MAILBOX_FULL;
  return NO_SUCH_RECIPIENT.includes(code);
}

const MAILBOX_FULL = "5.2.2";
/** From servers that give no details. */
const NO_SUCH_RECIPIENT = ["501", "550", "551", "553"];
