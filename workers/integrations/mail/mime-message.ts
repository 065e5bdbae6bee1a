/** A mail in the format of the Internet (RFC 5322, RFC 2045): ASCII only, with a plain and an HTML part. */
import { toBase64, toUtf8 } from "../../../shared/bytes.ts";
import type { Mailbox } from "../../config/mailbox.ts";
import { encodeDisplayName, encodeHeader } from "../../../shared/text/encoded-words.ts";
import type { Mail } from "./compose-mail.ts";

const CRLF = "\r\n";
const BASE64_LINE_CHARS = 76;

export function formatMimeMessage({ to, subject, text, html }: Mail, from: Mailbox): string {
  const { name, address } = from;
  const domain = address.slice(address.lastIndexOf("@") + 1);
  const boundary = crypto.randomUUID();
  return [
    `From: ${name === "" ? address : `${encodeDisplayName(name)} <${address}>`}`,
    `To: ${to}`,
    `Subject: ${encodeHeader(subject)}`,
    `Date: ${new Date().toUTCString().replace("GMT", "+0000")}`,
    `Message-ID: <${crypto.randomUUID()}@${domain}>`,
    // Servers that answer mails automatically do not answer one with this header (RFC 3834).
    "Auto-Submitted: auto-generated",
    "MIME-Version: 1.0",
    `Content-Type: multipart/alternative; boundary="${boundary}"`,
    "",
    ...encodePart(boundary, "text/plain", text),
    ...encodePart(boundary, "text/html", html),
    `--${boundary}--`,
    "",
  ].join(CRLF);
}

function encodePart(boundary: string, type: string, content: string): string[] {
  const base64 = toBase64(toUtf8(content.replaceAll(/\r?\n/g, CRLF)));
  return [
    `--${boundary}`,
    `Content-Type: ${type}; charset=utf-8`,
    "Content-Transfer-Encoding: base64",
    "",
    ...(base64.match(new RegExp(`.{1,${BASE64_LINE_CHARS}}`, "g")) ?? []),
  ];
}
