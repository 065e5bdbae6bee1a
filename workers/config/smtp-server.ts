/** The mail server that SMTP_URL names: `smtp[s]://user:password@host:port`, name and password percent-encoded. */

export interface SmtpServer {
  host: string;
  port: number;
  /** TLS from the first byte on. Otherwise STARTTLS, if the server offers it. */
  implicitTls: boolean;
  credentials: { user: string; password: string } | undefined;
  /** The server is on this machine: a password may be sent without TLS, and its certificate is not verified. */
  isLoopback: boolean;
}

/** @returns null when it is not a valid URL of a mail server. */
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

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host);
}
