/** The way of a mail: sealed into the outbox, and out of it to whoever delivers it. */
import type { Config } from "../../config/config.ts";
import type { Env } from "../../env.ts";
import { isEmailAddress } from "../../identity/accounts/emails.ts";
import { encrypt, decrypt } from "../../identity/encryption.ts";
import type { Mailbox } from "../../config/mailbox.ts";
import type { OutboxMessage } from "../../store/outbox-messages.ts";
import type { Mail } from "./mails.ts";
import { MAIL_REFUSED_STATUS } from "../../../protocol/mail-refusals.ts";
import { sendOverSmtp } from "./smtp.ts";

const PURPOSE = "mail";

/** Ready for the outbox. */
export async function encryptMail(config: Config, mail: Mail): Promise<OutboxMessage> {
  return { kind: "mail", payload: { sealed: await encrypt(config, PURPOSE, JSON.stringify(mail)) } };
}

/**
 * Over the gateway of a self-hosted server, otherwise straight to the mail server.
 *
 * @returns "refused" when the recipient takes no mail, now or later.
 * @throws Error when it was not delivered, and may be later.
 */
export async function sendMail(
  env: Env,
  config: Config,
  sealed: string,
): Promise<"sent" | "refused"> {
  const mail = JSON.parse(await decrypt(config, PURPOSE, sealed)) as Mail;
  // SMTP is lines of text: an address with another line in it would be another command.
  if (!isEmailAddress(mail.to)) return "refused";
  const gateway = mailGateway(env);
  if (gateway) return sendThroughGateway(gateway, env, { ...mail, from: config.MAIL_FROM });
  if (config.SMTP_URL) return sendOverSmtp(config.SMTP_URL, mail, config.MAIL_FROM);
  throw new Error("SMTP_URL is not set: there is nobody to deliver mail");
}

type Send = (path: string, init: RequestInit) => Promise<Response>;

function mailGateway({ MAIL_GATEWAY: gateway, GATEWAY_URL: url }: Env): Send | undefined {
  if (gateway) return (path, init) => gateway.fetch(`http://gateway${path}`, init);
  if (url !== undefined) return (path, init) => fetch(new URL(path, url), init);
  return undefined;
}

async function sendThroughGateway(
  send: Send,
  { GATEWAY_SECRET: secret }: Env,
  mail: Mail & { from: Mailbox },
): Promise<"sent" | "refused"> {
  const response = await send("/mail", {
    method: "POST",
    headers: { authorization: `Bearer ${secret ?? ""}`, "content-type": "application/json" },
    body: JSON.stringify(mail),
  });
  await response.body?.cancel();
  if (response.status === MAIL_REFUSED_STATUS) return "refused";
  if (!response.ok) throw new Error(`the mail gateway answered ${response.status}`);
  return "sent";
}
