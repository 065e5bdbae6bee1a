/** Delivery from a Worker, over the sockets of the platform. One connection for each mail. */
import { waitUntil } from "cloudflare:workers";
import { LogLevel, WorkerMailer } from "worker-mailer";
import { MAIL_DELIVERY_MAX_MS } from "../../../protocol/limits.ts";
import { utf8 } from "../../../shared/encoding.ts";
import type { Mailbox } from "../../config/mailbox.ts";
import type { SmtpServer } from "../../config/smtp-server.ts";
import { displayName, headerText } from "./encoded-words.ts";
import type { Mail } from "./mails.ts";
import { isPermanentRefusal } from "../../../protocol/recipients.ts";

/** @throws Error when it may work later. */
export async function sendOverSmtp(
  server: SmtpServer,
  { to, subject, text, html }: Mail,
  from: Mailbox,
): Promise<"sent" | "refused"> {
  const mailer = await WorkerMailer.connect({
    host: server.host,
    port: server.port,
    secure: server.implicitTls,
    ...(server.credentials && {
      credentials: {
        username: binary(server.credentials.user),
        password: binary(server.credentials.password),
      },
    }),
    authType: ["plain", "login"],
    socketTimeoutMs: MAIL_DELIVERY_MAX_MS,
    // Its lines would name the recipient, and hold the password at the finest level.
    logLevel: LogLevel.NONE,
  });
  try {
    await mailer.send({
      from: { email: from.address },
      to: { email: to },
      subject,
      text,
      html,
      // Written here, because the library encodes neither names nor long subjects as the standards ask.
      headers: {
        From: from.name === "" ? from.address : `${displayName(from.name)} <${from.address}>`,
        To: to,
        Subject: headerText(subject),
        "Auto-Submitted": "auto-generated",
      },
      // Otherwise it asks servers never to tell that a mail came back.
      dsnOverride: { NOTIFY: { FAILURE: true } },
    });
    return "sent";
  } catch (error) {
    const { message } = error as Error;
    const [, recipientReply] =
      /^Invalid RCPT TO: <[^>]*>(?: NOTIFY=\S+)? ([^]*)$/.exec(message) ?? [];
    if (recipientReply !== undefined && isPermanentRefusal(recipientReply)) return "refused";
    throw new Error(message.replaceAll(to, "the recipient").trim(), { cause: undefined });
  } finally {
    // The server's goodbye is waited for by nobody.
    waitUntil(mailer.close());
  }
}

/** The library encodes bytes, one a character. */
function binary(text: string): string {
  return String.fromCharCode(...utf8(text));
}
