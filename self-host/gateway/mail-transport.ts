/** Sends a mail over SMTP, or writes it to a file. Loaded with the first mail, because nodemailer takes 23 MiB. */
import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { link, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import nodemailer from "nodemailer";
import MailComposer from "nodemailer/lib/mail-composer/index.js";
import type { SmtpServer } from "../../workers/config/smtp-server.ts";
import { getErrorCode } from "../../shared/error-message.ts";
import { encodeHeader } from "../../shared/text/encoded-words.ts";
import type { Log } from "../log.ts";

const MAIL_FILE_NAME_MAX_CHARS = 80;

export interface Mail {
  to: string;
  from: { name: string; address: string };
  subject: string;
  text: string;
  html?: string | undefined;
}

export interface MailOptions {
  /** For mails when no SMTP server is configured. */
  mailDir: string;
  smtpServer: SmtpServer | undefined;
  log: Log;
}

export interface MailTransport {
  /** Resolves when the mail was delivered or written. */
  send(mail: Mail): Promise<void>;
  close(): void;
}

export function createMailTransport({ mailDir, smtpServer, log }: MailOptions): MailTransport {
  if (smtpServer) return createSmtpTransport(smtpServer);
  return {
    async send(mail) {
      const path = await writeMail(mailDir, mail);
      log.info(`mail for ${mail.to} is in ${path}`);
    },
    close() {},
  };
}

function createSmtpTransport(server: SmtpServer): MailTransport {
  const transport = openSmtpConnections(server);
  return {
    async send(mail) {
      const signal = AbortSignal.timeout(server.timeoutMs);
      try {
        await transport.sendMail({ ...withHeaders(mail), signal });
      } catch (error) {
        throw signal.aborted ? new Error("the mail server took too long", { cause: error }) : error;
      }
    },
    close: () => transport.close(),
  };
}

function openSmtpConnections(server: SmtpServer) {
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
