/**
 * The mail server that SMTP_URL names: `smtp[s]://user:password@host:port?timeout=SECONDS`, name and password
 * percent-encoded.
 */
import { isLoopback, stripBrackets } from "../../shared/hosts.ts";

/** An attempt to deliver a mail is abandoned after this long, and no URL allows more. */
const MAIL_TIMEOUT_MAX_SECONDS = 25;

export interface SmtpServer {
  host: string;
  port: number;
  /** TLS from the first byte on. Otherwise STARTTLS, if the server offers it. */
  implicitTls: boolean;
  credentials: { user: string; password: string } | undefined;
  /** The server is on this machine: a password may be sent without TLS, and its certificate is not verified. */
  isLoopback: boolean;
  /** For one attempt to deliver a mail. */
  timeoutMs: number;
}

/** @returns null when it is not a valid URL of a mail server. */
export function parseSmtpUrl(text: string): SmtpServer | null {
  const url = URL.parse(text);
  if (!url || !/^smtps?:$/.test(url.protocol) || url.hostname === "") return null;
  const implicitTls = url.protocol === "smtps:";
  const timeoutSeconds = Number(url.searchParams.get("timeout") ?? MAIL_TIMEOUT_MAX_SECONDS);
  if (!(timeoutSeconds >= 1 && timeoutSeconds <= MAIL_TIMEOUT_MAX_SECONDS)) return null;
  const host = stripBrackets(url.hostname);
  try {
    const user = decodeURIComponent(url.username);
    const password = decodeURIComponent(url.password);
    return {
      host,
      port: url.port === "" ? (implicitTls ? 465 : 587) : Number(url.port),
      implicitTls,
      credentials: user === "" ? undefined : { user, password },
      isLoopback: isLoopback(host),
      timeoutMs: timeoutSeconds * 1000,
    };
  } catch {
    return null;
  }
}
