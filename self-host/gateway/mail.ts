/** `POST /mail`: sends the mail over SMTP when a server is configured, or writes a file whose path is logged. */
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { link, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import nodemailer from "nodemailer";
import MailComposer from "nodemailer/lib/mail-composer/index.js";
import { z } from "zod";
import { isPermanentRefusal, MAIL_REFUSED_STATUS } from "../../protocol/mail-refusals.ts";
import type { SmtpServer } from "../../workers/config/smtp-server.ts";
import { parseJson } from "../../shared/json.ts";
import { encodeHeader } from "../../shared/text/encoded-words.ts";
import { getErrorCode, getErrorMessage } from "../../shared/error-message.ts";
import type { Log } from "../log.ts";
import { type GatewayResponse, buildErrorResponse } from "./response.ts";

const MAIL_FILE_NAME_MAX_CHARS = 80;

const Mail = z.object({
  to: z.email(),
  from: z.object({ name: z.string(), address: z.string().min(3) }),
  subject: z.string(),
  text: z.string(),
  html: z.string().optional(),
});
type Mail = z.output<typeof Mail>;

export interface Mailer {
  /** Answers 200 only after the mail was delivered or written, and 503 with the reason when it was not. */
  handle(body: string): Promise<GatewayResponse>;
  close(): void;
}

export interface MailOptions {
  mailDir: string;
  smtpServer: SmtpServer | undefined;
  log: Log;
}

export function createMailer({ mailDir, smtpServer, log }: MailOptions): Mailer {
  const transport = smtpServer && createSmtpTransport(smtpServer);

  async function deliver(mail: Mail): Promise<void> {
    if (smtpServer && transport) {
      const signal = AbortSignal.timeout(smtpServer.timeoutMs);
      try {
        await transport.sendMail({ ...withHeaders(mail), signal });
      } catch (error) {
        throw signal.aborted ? new Error("the mail server took too long", { cause: error }) : error;
      }
      return;
    }
    const path = await writeMail(mailDir, mail);
    log.info(`mail for ${mail.to} is in ${path}`);
  }

  return {
    async handle(body) {
      const mail = Mail.safeParse(parseJson(body)).data;
      if (!mail) return buildErrorResponse(400, "the body must be {to, from, subject, text, html}");
      try {
        await deliver(mail);
        return { status: 200, body: "{}" };
      } catch (error) {
        if (isRecipientRefused(error)) {
          log.warn(
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

function createSmtpTransport(server: SmtpServer) {
  const { host, port, implicitTls, credentials, isLoopback, timeoutMs } = server;
  return nodemailer.createTransport({
    host,
    port,
    secure: implicitTls,
    ...(credentials && { auth: { user: credentials.user, pass: credentials.password } }),
    requireTLS: credentials !== undefined && !implicitTls && !isLoopback,
    tls: { rejectUnauthorized: !isLoopback },
    pool: true,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
}

function withHeaders({ subject, ...mail }: Mail) {
  const headers = {
    // nodemailer sends `=?utf-8?Q?…?=` in a subject as it is, and mail programs would show what a user has encoded.
    Subject: { prepared: true, value: encodeHeader(subject) },
    // Out-of-office programs and the like do not answer a mail with this header (RFC 3834).
    "Auto-Submitted": "auto-generated",
  };
  return { ...mail, headers };
}

/** Returns whether the server permanently rejected the recipient. */
function isRecipientRefused(error: unknown): boolean {
  const { command, response } = error as { command?: unknown; response?: unknown };
  return command === "RCPT TO" && typeof response === "string" && isPermanentRefusal(response);
}

async function writeMail(dir: string, mail: Mail): Promise<string> {
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const fresh = join(dir, `${randomUUID()}.new`);
  const access = { disableFileAccess: true, disableUrlAccess: true };
  const message = new MailComposer({ ...withHeaders(mail), ...access });
  await pipeline(
    message.compile().createReadStream(),
    createWriteStream(fresh, { mode: 0o600, flags: "wx" }),
  );
  try {
    return await linkWithUniqueName(fresh, (time) =>
      join(dir, `${time}-${toFileName(mail.to)}.eml`),
    );
  } finally {
    await rm(fresh);
  }
}

/** Never replaces another mail of the same millisecond: the later one gets the next free millisecond. */
async function linkWithUniqueName(
  fresh: string,
  pathAt: (time: string) => string,
): Promise<string> {
  for (let timeMs = Date.now(); ; timeMs += 1) {
    const path = pathAt(new Date(timeMs).toISOString().replace(/[:.]/g, "-"));
    try {
      await link(fresh, path);
      return path;
    } catch (error) {
      if (getErrorCode(error) !== "EEXIST") throw error;
    }
  }
}

function toFileName(address: string): string {
  return address.replace(/[^a-zA-Z0-9@._+-]/g, "_").slice(0, MAIL_FILE_NAME_MAX_CHARS);
}
