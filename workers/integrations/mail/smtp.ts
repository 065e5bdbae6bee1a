/** Delivery from a Worker: nodemailer's SMTP client on a socket of the platform, one connection for each mail. */
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import SMTPConnection from "nodemailer/lib/smtp-connection";
import { isRecipientRefused } from "../../../protocol/mail-refusals.ts";
import type { Mailbox } from "../../config/mailbox.ts";
import type { SmtpServer } from "../../config/smtp-server.ts";
import type { Mail } from "./compose-mail.ts";
import { formatMimeMessage } from "./mime-message.ts";

const SMTP_REPLY_MAX_BYTES = 64 * 1024;
/** How long the server may take to close its side after `QUIT`. */
const SMTP_CLOSE_MAX_MS = 1_000;

/** @throws Error when the mail was not delivered, and may be later. */
export async function sendOverSmtp(
  server: SmtpServer,
  mail: Mail,
  from: Mailbox,
): Promise<"sent" | "refused"> {
  const failure = Promise.withResolvers<never>();
  failure.promise.catch(() => undefined);
  // nodemailer's own timeouts start again with each byte that the server sends. This one is for the whole delivery.
  const timer = setTimeout(() => {
    failure.reject(new Error("the mail server took too long"));
  }, server.timeoutMs);
  const orFailure = <Value>(work: Promise<Value>) => Promise.race([work, failure.promise]);

  const socket = openSocket(server);
  // nodemailer listens only from its own start on: a server that hangs up before that would be waited for.
  socket.on("error", failure.reject);
  socket.on("close", () => failure.reject(new Error("the mail server closed the connection")));
  let connection: SMTPConnection | undefined;
  try {
    await orFailure(waitUntilOpen(socket, server));
    connection = openConnection(server, socket);
    connection.on("error", failure.reject);
    await orFailure(deliver(connection, server, mail, from));
    connection.quit();
    return "sent";
  } catch (error) {
    if (isRecipientRefused(error)) return "refused";
    throw createDeliveryError(mail.to, (error as Error).message);
  } finally {
    clearTimeout(timer);
    if (connection) connection.close();
    else socket.destroy();
  }
}

/**
 * Opened here by the server's name. nodemailer would resolve the name itself and connect to an address, against which the
 * platform would then check the certificate.
 */
function openSocket({ host, port, implicitTls }: SmtpServer): Socket {
  return implicitTls ? connectTls({ host, port }) : connectTcp({ host, port });
}

function waitUntilOpen(socket: Socket, { implicitTls }: SmtpServer): Promise<void> {
  return new Promise((resolve) => {
    socket.on(implicitTls ? "secureConnect" : "connect", resolve);
  });
}

function openConnection(server: SmtpServer, socket: Socket): SMTPConnection {
  const { host, port, implicitTls, credentials, isLoopback, timeoutMs } = server;
  return new SMTPConnection({
    host,
    port,
    connection: socket,
    secure: implicitTls,
    secured: implicitTls,
    // A password is never sent unencrypted, whatever the server or a proxy in between offers.
    requireTLS: credentials !== undefined && !implicitTls && !isLoopback,
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    socketCloseTimeout: SMTP_CLOSE_MAX_MS,
    maxResponseSize: SMTP_REPLY_MAX_BYTES,
  });
}

async function deliver(
  connection: SMTPConnection,
  { credentials }: SmtpServer,
  mail: Mail,
  from: Mailbox,
): Promise<void> {
  await toPromise((done) => connection.connect(done));
  if (credentials) {
    const { user, password } = credentials;
    await toPromise((done) => connection.login({ user, pass: password }, done));
  }
  const envelope = { from: from.address, to: [mail.to] };
  await toPromise((done) => connection.send(envelope, formatMimeMessage(mail, from), done));
}

type Done = (error?: Error | null) => void;

function toPromise(start: (done: Done) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    start((error) => (error ? reject(error) : resolve()));
  });
}

/** A log must not name the recipient, whose address may be in the mail server's answer. */
export function createDeliveryError(recipient: string, reason: string): Error {
  return new Error(reason.replaceAll(recipient, "the recipient").trim());
}
