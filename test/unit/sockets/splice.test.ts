import { once } from "node:events";
import { join } from "node:path";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { reset } from "../../../sockets/splice.ts";
import { createTemporaryDir } from "../../harness/directories.ts";
import { createCertificate } from "../../harness/fakes/certificate.ts";

async function listen(server: Server, path?: string): Promise<number> {
  onTestFinished(() => void server.close());
  server.listen(path ?? { port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  return path === undefined ? (server.address() as AddressInfo).port : 0;
}

/** @returns how the connection that the server accepted has ended. */
function waitForEnd(accepted: Socket): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  accepted.on("error", ({ message }: Error) => resolve(message)).on("end", () => resolve("end"));
  accepted.resume();
  return promise;
}

test.each(["while it is being opened", "later"])(
  "a TCP connection that is reset %s is reset at the other end too",
  async (moment) => {
    const server = createServer({ allowHalfOpen: true });
    const port = await listen(server);
    const accepted = once(server, "connection");
    const socket = connect(port, "127.0.0.1");
    if (moment === "later") await once(socket, "connect");
    reset(socket);
    const [other] = (await accepted) as [Socket];
    expect(await waitForEnd(other)).toBe("read ECONNRESET");
  },
);

test.each(["while it is being opened", "later"])(
  "a connection over a Unix socket that is reset %s is closed",
  async (moment) => {
    const path = join(await createTemporaryDir(), "server.sock");
    const server = createServer();
    await listen(server, path);
    const accepted = once(server, "connection");
    const socket = connect(path);
    if (moment === "later") await once(socket, "connect");
    reset(socket);
    expect(socket.destroyed).toBe(true);
    if (moment === "later") expect(await waitForEnd(((await accepted) as [Socket])[0])).toBe("end");
  },
);

test("both ends of a TLS connection can be reset, which closes it", async () => {
  const certificate = createCertificate({ names: ["localhost"] });
  const server = createTlsServer(certificate);
  const port = await listen(server);
  for (const isServer of [true, false]) {
    const accepted = once(server, "secureConnection");
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
    const [[other]] = (await Promise.all([accepted, once(socket, "secureConnect")])) as [
      [Socket],
      [],
    ];
    const ended = waitForEnd(isServer ? socket : other);
    reset(isServer ? other : socket);
    expect(await ended).toBeOneOf(["end", "read ECONNRESET"]);
  }
});
