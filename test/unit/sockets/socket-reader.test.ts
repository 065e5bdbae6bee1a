/** Sockets whose bytes go to a receiver, which may hold them until it resumes the socket. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer as createTcpServer } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { expect, test } from "vitest";
import { connectSocket, connectTlsSocket, setReceiver } from "../../../sockets/socket-reader.ts";
import { createCertificate } from "../../harness/fakes/certificate.ts";

const SENT = randomBytes(8 * 1024 * 1024);
const certificate = createCertificate();

const send = (socket: Socket): void =>
  void socket
    .on("error", () => undefined)
    .resume()
    .end(SENT);

test.each<[string, () => Server, (port: number) => Socket]>([
  ["TCP", () => createTcpServer(send), (port) => connectSocket({ port, host: "127.0.0.1" })],
  [
    "TLS",
    () => createTlsServer(certificate, send),
    (port) => {
      const trust = { ca: certificate.cert, servername: "localhost" };
      return connectTlsSocket({ port, host: "127.0.0.1", ...trust, allowHalfOpen: true });
    },
  ],
])(
  "bytes of %s that the receiver holds stay unchanged until it resumes",
  async (_, create, connect) => {
    const server = create().listen(0, "127.0.0.1");
    await once(server, "listening");
    const socket = connect((server.address() as AddressInfo).port);
    const received: Buffer[] = [];
    const { promise: complete, resolve } = Promise.withResolvers<void>();
    let count = 0;
    setReceiver(socket, (held) => {
      // Other events, such as the arrival of more bytes, are handled first.
      setImmediate(() => {
        received.push(Buffer.from(held));
        count += held.length;
        if (count === SENT.length) resolve();
        socket.resume();
      });
      return false;
    });
    socket.resume();
    await complete;
    socket.destroy();
    server.close();
    await once(server, "close");
    expect(Buffer.concat(received).equals(SENT)).toBe(true);
  },
);
