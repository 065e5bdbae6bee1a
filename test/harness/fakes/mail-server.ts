/** A real SMTP server in the test process, and what it was brought. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import PostalMime, { type Email } from "postal-mime";
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from "smtp-server";
import { reservePort } from "../ports.ts";

export interface ReceivedMail extends Email {
  raw: string;
  /** Of the envelope, whatever the headers say. */
  recipients: string[];
  session: SMTPServerSession;
}

/** What it says to a recipient: a reply of SMTP, or nothing from the first moment on. */
export type Behavior = "takes" | "is silent" | "hangs up" | `${4 | 5}${number} ${string}`;

export interface MailServer extends AsyncDisposable {
  port: number;
  mails: ReceivedMail[];
  behavior: Behavior;
  /** Connections that were opened so far. */
  connections: number;
  /** Refuses connections from now on, and breaks those that there are. */
  stop(): Promise<void>;
  /** On the same port as before. */
  start(): Promise<void>;
}

/** Without TLS and passwords, unless the options say how. */
export async function startMailServer(options: SMTPServerOptions = {}): Promise<MailServer> {
  let smtp: SMTPServer | undefined;
  const server: MailServer = {
    port: await reservePort(),
    mails: [],
    behavior: "takes",
    connections: 0,
    async start() {
      smtp = new SMTPServer({ ...standard(server), ...options });
      // A connection that breaks is its client's to notice.
      smtp.on("error", () => {});
      smtp.server.on("connection", (socket: Socket) => {
        if (server.behavior === "hangs up") socket.end();
      });
      smtp.listen(server.port, "127.0.0.1");
      await once(smtp.server, "listening");
    },
    async stop() {
      const stopping = smtp;
      smtp = undefined;
      await new Promise<void>((resolve) => (stopping ? stopping.close(resolve) : resolve()));
    },
    [Symbol.asyncDispose]: () => server.stop(),
  };
  await server.start();
  return server;
}

function standard(server: MailServer): SMTPServerOptions {
  return {
    disabledCommands: ["STARTTLS", "AUTH"],
    disableReverseLookup: true,
    closeTimeout: 1,
    onConnect(_session, proceed) {
      server.connections++;
      if (server.behavior !== "is silent" && server.behavior !== "hangs up") proceed();
    },
    onRcptTo(_address, _session, proceed) {
      const [, code, words = ""] = /^(\d{3}) (.*)$/.exec(server.behavior) ?? [];
      if (code === undefined) proceed();
      else proceed(Object.assign(new Error(words), { responseCode: Number(code) }));
    },
    onData(stream, session, taken) {
      const recipients = session.envelope.rcptTo.map(({ address }) => address);
      void buffer(stream).then(async (bytes) => {
        const email = await PostalMime.parse(bytes);
        server.mails.push({ ...email, raw: bytes.toString("latin1"), recipients, session });
        taken();
      });
    },
  };
}
