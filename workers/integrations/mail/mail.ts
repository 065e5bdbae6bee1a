/** Turns mails into outbox messages, and sends them from the outbox: through the gateway, or directly by SMTP. */
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { hasGateway, postToGateway } from "../../gateway.ts";
import { isEmailAddress } from "../../identity/accounts/emails.ts";
import { encrypt, decrypt } from "../../identity/encryption.ts";
import type { Mailbox } from "../../config/mailbox.ts";
import type { OutboxMessage } from "../../store/outbox-messages.ts";
import type { Mail } from "./compose-mail.ts";
import { MAIL_REFUSED_STATUS } from "../../../protocol/mail-refusals.ts";
import { createDeliveryError, sendOverSmtp } from "./smtp.ts";

const PURPOSE = "mail";

/** @returns the mail, encrypted, as an outbox message. */
export async function toOutboxMail(config: Config, mail: Mail): Promise<OutboxMessage> {
  return {
    kind: "mail",
    payload: { sealed: await encrypt(config, PURPOSE, JSON.stringify(mail)) },
  };
}

/**
 * Sends through the gateway on a self-hosted server, otherwise directly to the mail server.
 *
 * @returns "refused" when the mail server refused the recipient permanently.
 * @throws Error when the mail was not delivered, and may be later.
 */
export async function sendMail(
  env: Env,
  config: Config,
  encrypted: string,
): Promise<"sent" | "refused"> {
  const mail = JSON.parse(await decrypt(config, PURPOSE, encrypted)) as Mail;
  // SMTP is line-based: an address that contains a line break would add a command.
  if (!isEmailAddress(mail.to)) return "refused";
  if (hasGateway(env)) return sendThroughGateway(env, { ...mail, from: config.MAIL_FROM });
  if (config.SMTP_URL) return sendOverSmtp(config.SMTP_URL, mail, config.MAIL_FROM);
  throw new Error("SMTP_URL is not set: mail can't be sent");
}

async function sendThroughGateway(
  env: Env,
  mail: Mail & { from: Mailbox },
): Promise<"sent" | "refused"> {
  const response = await postToGateway(env, "/mail", mail);
  const { message = "" } = (await response.json()) as { message?: string };
  if (response.status === MAIL_REFUSED_STATUS) return "refused";
  if (!response.ok) throw createDeliveryError(mail.to, message);
  return "sent";
}
