/** `POST /mail`: over SMTP when there is a server for it, otherwise a file that the operator finds in the log. */
import { createWriteStream } from "node:fs";
import { link, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import nodemailer from "nodemailer";
import MailComposer from "nodemailer/lib/mail-composer/index.js";
import { z } from "zod";
import { MAIL_DELIVERY_MAX_MS, MAIL_FILE_NAME_MAX_CHARS } from "../../protocol/limits.ts";
import { messageOf } from "../failure.ts";
import type { Log } from "../log.ts";
import { type Answer, errorAnswer } from "./answer.ts";

const Mail = z.object({
  to: z.email(),
  from: z.string().min(3),
  subject: z.string(),
  text: z.string(),
  html: z.string().optional(),
});
type Mail = z.output<typeof Mail>;

export interface Mailer {
  /** 204 only once the mail is delivered or written. */
  answer(body: string): Promise<Answer>;
  close(): void;
}

export interface MailOptions {
  mailDir: string;
  smtpUrl: string | undefined;
  log: Log;
}

export function createMailer({ mailDir, smtpUrl, log }: MailOptions): Mailer {
  const transport = smtpUrl === undefined ? undefined : smtpTransport(smtpUrl);

  async function deliver(mail: Mail): Promise<void> {
    if (transport) {
      await transport.sendMail(mail);
      return;
    }
    const path = await writeMail(mailDir, mail);
    log.info(`mail for ${mail.to} is in ${path}`);
  }

  return {
    async answer(body) {
      const mail = parse(body);
      if (!mail) return errorAnswer(400, "the body must be {to, from, subject, text, html}");
      try {
        await deliver(mail);
        return { status: 200, body: "{}" };
      } catch (error) {
        log.warn(`mail for ${mail.to} was not delivered: ${messageOf(error)}`);
        return errorAnswer(503, "the mail was not delivered");
      }
    },
    close: () => transport?.close(),
  };
}

function smtpTransport(smtpUrl: string) {
  return nodemailer.createTransport({
    url: smtpUrl,
    pool: true,
    connectionTimeout: MAIL_DELIVERY_MAX_MS,
    greetingTimeout: MAIL_DELIVERY_MAX_MS,
    socketTimeout: MAIL_DELIVERY_MAX_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

function parse(body: string): Mail | undefined {
  try {
    return Mail.safeParse(JSON.parse(body)).data;
  } catch {
    return undefined;
  }
}

async function writeMail(dir: string, mail: Mail): Promise<string> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const time = new Date().toISOString().replace(/[:.]/g, "-");
  const path = join(dir, `${time}-${fileNameOf(mail.to)}.eml`);
  const fresh = `${path}.new`;
  const message = new MailComposer({ ...mail, disableFileAccess: true, disableUrlAccess: true });
  await pipeline(
    message.compile().createReadStream(),
    createWriteStream(fresh, { mode: 0o600, flags: "wx" }),
  );
  // Not over another mail of the same millisecond: that one of the two is sent again.
  await link(fresh, path).finally(() => rm(fresh));
  return path;
}

function fileNameOf(address: string): string {
  return address.replace(/[^a-zA-Z0-9@._+-]/g, "_").slice(0, MAIL_FILE_NAME_MAX_CHARS);
}
