/** Whether a mail server's refusal of a recipient is permanent. */

/** The status with which a self-hosted server's gateway reports a permanent refusal. */
export const MAIL_REFUSED_STATUS = 422;

/**
 * Permanent: the address is wrong or accepts no mail. Other refusals are about the server itself (it requires a password,
 * does not relay, is full) and can be gone tomorrow. RFC 3463 defines the classes.
 */
export function isPermanentRefusal(reply: string): boolean {
  const [, code = "", detail] = /^(\d{3})[ -](?:(\d\.\d{1,3}\.\d{1,3})\b)?/.exec(reply) ?? [];
  if (detail !== undefined) return /^5\.[12]\./.test(detail) && detail !== MAILBOX_FULL;
  return NO_SUCH_RECIPIENT.includes(code);
}

/** @param error of nodemailer. @returns whether the server has permanently refused the recipient. */
export function isRecipientRefused(error: unknown): boolean {
  const { command, response } = error as { command?: unknown; response?: unknown };
  return command === "RCPT TO" && typeof response === "string" && isPermanentRefusal(response);
}

const MAILBOX_FULL = "5.2.2";
/** From servers that send no enhanced status code. */
const NO_SUCH_RECIPIENT = ["501", "550", "551", "553"];
