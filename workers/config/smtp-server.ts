/** The mail server that SMTP_URL names: `smtp[s]://user:password@host:port`, name and password percent-encoded. */

export interface SmtpServer {
  host: string;
  port: number;
  /** TLS from the first byte on. Otherwise STARTTLS, where the server offers it. */
  implicitTls: boolean;
  credentials: { user: string; password: string } | undefined;
  /** Nobody is between: a password may go there as it is, and a certificate says nothing. */
  isLoopback: boolean;
}

/** @returns null when it can't be one. */
export function parseSmtpUrl(text: string): SmtpServer | null {
  const url = URL.parse(text);
  if (!url || !/^smtps?:$/.test(url.protocol) || url.hostname === "") return null;
  const implicitTls = url.protocol === "smtps:";
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  try {
    const user = decodeURIComponent(url.username);
    const password = decodeURIComponent(url.password);
    return {
      host,
      port: url.port === "" ? (implicitTls ? 465 : 587) : Number(url.port),
      implicitTls,
      credentials: user === "" ? undefined : { user, password },
      isLoopback: isLoopback(host),
    };
  } catch {
    return null;
  }
}

export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
