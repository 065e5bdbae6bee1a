/**
 * What worker-mailer is given in place of `cloudflare:sockets` (self-host/build/build.ts): the same sockets, kept
 * from three things that it does with them. It asks for ever after the next byte of a connection that has
 * ended; it waits for ever for a server that takes no more bytes; and it sends a password in the clear
 * when the server, or somebody in between, offers no STARTTLS.
 */
import { connect as open } from "cloudflare:sockets";
import { MAIL_DELIVERY_MAX_MS } from "../../../protocol/limits.ts";
import { isLoopback } from "../../config/smtp-server.ts";

/** As much of a socket as worker-mailer uses. */
interface MailSocket {
  opened: Promise<unknown>;
  readable: { getReader(): MailReader };
  writable: { getWriter(): MailWriter };
  startTls(): MailSocket;
  close(): Promise<void>;
}
interface MailReader {
  read(): Promise<ReadableStreamReadResult<Uint8Array>>;
  releaseLock(): void;
}
interface MailWriter {
  write(bytes: Uint8Array): Promise<void>;
  releaseLock(): void;
}

export function connect(
  address: { hostname: string; port: number },
  options: SocketOptions,
): MailSocket {
  const socket = open(address, options);
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => undefined);
  const timer = setTimeout(() => {
    late.reject(new Error("the mail server took too long"));
  }, MAIL_DELIVERY_MAX_MS);
  const inTime = <Value>(work: Promise<Value>) => Promise.race([work, late.promise]);
  const isPrivate = options.secureTransport === "on" || isLoopback(address.hostname);
  return guard(socket, { inTime, isPrivate, onClose: () => clearTimeout(timer) });
}

interface Guard {
  inTime: <Value>(work: Promise<Value>) => Promise<Value>;
  /** Nobody can read along. */
  isPrivate: boolean;
  onClose: () => void;
}

function guard(socket: Socket, rules: Guard): MailSocket {
  const { inTime, isPrivate, onClose } = rules;
  // How it ended is told to whoever reads or writes.
  socket.closed.catch(() => undefined);
  return {
    opened: inTime(socket.opened),
    readable: {
      getReader() {
        const reader = (socket.readable as ReadableStream<Uint8Array>).getReader();
        return {
          async read() {
            const result = await inTime(reader.read());
            if (result.done) throw new Error("the mail server hung up");
            return result;
          },
          releaseLock: () => reader.releaseLock(),
        };
      },
    },
    writable: {
      getWriter() {
        const writer = (socket.writable as WritableStream<Uint8Array>).getWriter();
        return {
          async write(bytes) {
            if (!isPrivate && isAuth(bytes)) {
              throw new Error("the mail server offers no TLS: the password is not sent without");
            }
            await inTime(writer.write(bytes));
          },
          releaseLock: () => writer.releaseLock(),
        };
      },
    },
    startTls: () => guard(socket.startTls(), { ...rules, isPrivate: true }),
    async close() {
      onClose();
      await socket.close();
    },
  };
}

/** The first bytes of `AUTH`, which begin a message of worker-mailer's of their own. */
function isAuth(bytes: Uint8Array): boolean {
  return new TextDecoder().decode(bytes.subarray(0, 5)).toUpperCase() === "AUTH ";
}
