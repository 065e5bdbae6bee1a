/** A real SMTP server in the test process that stores the mails it receives. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { buffer } from "node:stream/consumers";
import PostalMime, { type Email } from "postal-mime";
import { SMTPServer, type SMTPServerOptions, type SMTPServerSession } from "smtp-server";
import { reservePort } from "../ports.ts";

interface ReceivedMail extends Email {
  raw: string;
  /** The recipients of the envelope, which can differ from the headers. */
  recipients: string[];
  session: SMTPServerSession;
}

/** How it handles a recipient: accepts it, sends this SMTP reply, or fails as soon as a client connects. */
export type MailServerBehavior =
  | "accepts"
  | "is silent"
  | "hangs up"
  | `${4 | 5}${number} ${string}`;

export interface MailServer extends AsyncDisposable {
  port: number;
  mails: ReceivedMail[];
  behavior: MailServerBehavior;
  /** Number of connections opened so far. */
  connections: number;
  /** Closes all connections and stops listening. */
  stop(): Promise<void>;
  /** Listens on the same port again. */
  start(): Promise<void>;
}

/** Without TLS and authentication, unless the options enable them. */
export async function startMailServer(options: SMTPServerOptions = {}): Promise<MailServer> {
  let smtp: SMTPServer | undefined;
  const server: MailServer = {
    port: await reservePort(),
    mails: [],
    behavior: "accepts",
    connections: 0,
    async start() {
      smtp = new SMTPServer({ ...buildOptions(server), ...options });
      // A broken connection is handled by the client under test.
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

function buildOptions(server: MailServer): SMTPServerOptions {
  return {
    disabledCommands: ["STARTTLS", "AUTH"],
    disableReverseLookup: true,
    closeTimeout: 1,
    onConnect(_session, proceed) {
      server.connections++;
      if (server.behavior !== "is silent" && server.behavior !== "hangs up") proceed();
    },
    onRcptTo(_address, _session, proceed) {
      const [, code, message = ""] = /^(\d{3}) (.*)$/.exec(server.behavior) ?? [];
      if (code === undefined) proceed();
      else proceed(Object.assign(new Error(message), { responseCode: Number(code) }));
    },
    onData(stream, session, accept) {
      const recipients = session.envelope.rcptTo.map(({ address }) => address);
      void buffer(stream).then(async (bytes) => {
        const email = await PostalMime.parse(bytes);
        server.mails.push({ ...email, raw: bytes.toString("latin1"), recipients, session });
        accept();
      });
    },
  };
}
