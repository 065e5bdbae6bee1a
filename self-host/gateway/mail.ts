/** `POST /mail`: sends the mail over SMTP when a server is configured, or writes a file whose path is logged. */
import { z } from "zod";
import { isRecipientRefused, MAIL_REFUSED_STATUS } from "../../protocol/mail-refusals.ts";
import { parseJson } from "../../shared/json.ts";
import { getErrorMessage } from "../../shared/error-message.ts";
import type { Mail, MailOptions, MailTransport } from "./mail-transport.ts";
import { type GatewayResponse, buildErrorResponse } from "./response.ts";

const MailBody = z.object({
  to: z.email(),
  from: z.object({ name: z.string(), address: z.string().min(3) }),
  subject: z.string(),
  text: z.string(),
  html: z.string().optional(),
});

interface Mailer {
  /** Answers 200 only after the mail was delivered or written, and 503 with the reason when it was not. */
  handle(body: string): Promise<GatewayResponse>;
  close(): void;
}

export function createMailer(options: MailOptions): Mailer {
  let transport: MailTransport | undefined;

  async function deliver(mail: Mail): Promise<void> {
    const { createMailTransport } = await import("./mail-transport.ts");
    transport ??= createMailTransport(options);
    await transport.send(mail);
  }

  return {
    async handle(body) {
      const mail = MailBody.safeParse(parseJson(body)).data;
      if (!mail) return buildErrorResponse(400, "the body must be {to, from, subject, text, html}");
      try {
        await deliver(mail);
        return { status: 200, body: "{}" };
      } catch (error) {
        if (isRecipientRefused(error)) {
          options.log.warn(
            `mail for ${mail.to} was refused by the mail server, and is not sent again: ${getErrorMessage(error)}`,
          );
          return buildErrorResponse(MAIL_REFUSED_STATUS, "the mail server rejected the recipient");
        }
        // The Worker logs the reason, and retries.
        return buildErrorResponse(503, getErrorMessage(error));
      }
    },
    close: () => transport?.close(),
  };
}
