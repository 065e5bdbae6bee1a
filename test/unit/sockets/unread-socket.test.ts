/** Two joined connections, when the peer of a socket that is not read is gone. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { connect as connectTls, createServer as createTlsServer } from "node:tls";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { adoptSocket } from "../../../sockets/socket-reader.ts";
import { Splice, SPLICED_SERVER_OPTIONS } from "../../../sockets/splice.ts";
import { createCertificate } from "../../harness/fakes/certificate.ts";
import { WAIT_OPTIONS } from "../../harness/timeouts.ts";

const CHECK_INTERVAL_MS = 10_000;
const HOUR_MS = 3_600_000;
/** More than all buffers of the kernel hold. */
const LARGE_BYTES = 32 * 1024 * 1024;

beforeEach(() => void vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => void vi.useRealTimers());

interface Ends {
  /** The TCP connection of the end that sends. */
  sender: Socket;
  /** The end itself, with TLS where the test uses it. */
  source: Socket;
  /** Reads nothing until the test reads. */
  receiver: Socket;
  splice: Splice;
  isClosed: Promise<unknown>;
}

/** @returns an accepted connection, and its peer. */
async function accept(
  server: Server,
  event: "connection" | "secureConnection",
  secure?: (peer: Socket) => void,
): Promise<[Socket, Socket]> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const accepted = once(server, event);
  const { port } = server.address() as AddressInfo;
  const peer = connect({ port, host: "127.0.0.1", allowHalfOpen: true }).pause();
  peer.on("error", () => undefined);
  secure?.(peer);
  const [socket] = (await accepted) as [Socket];
  server.close();
  onTestFinished(() => void peer.destroy());
  return [socket, peer];
}

async function join(protocol: "TCP" | "TLS"): Promise<Ends> {
  let source: Socket | undefined;
  const [first, sender] =
    protocol === "TCP"
      ? await accept(createServer(SPLICED_SERVER_OPTIONS), "connection")
      : await accept(
          createTlsServer({ ...createCertificate(), allowHalfOpen: true }),
          "secureConnection",
          (socket) => {
            source = connectTls({ socket, rejectUnauthorized: false });
            source.on("error", () => undefined);
          },
        );
  const [second, receiver] = await accept(createServer(SPLICED_SERVER_OPTIONS), "connection");
  const { promise: isClosed, resolve } = Promise.withResolvers<void>();
  const splice = new Splice(adoptSocket(first.pause()), adoptSocket(second), { onClose: resolve });
  return { sender, source: source ?? sender, receiver, splice, isClosed };
}

/** Resolves when the receiver's side takes no more. */
async function sendUntilBlocked({ source, splice }: Ends): Promise<void> {
  source.write(Buffer.alloc(LARGE_BYTES));
  let before = -1;
  await vi.waitUntil(() => {
    const isBlocked = splice.bytesFromFirst > 0 && splice.bytesFromFirst === before;
    before = splice.bytesFromFirst;
    return isBlocked;
  }, WAIT_OPTIONS);
}

/** Lets the checks run until both connections are closed: the kernel of a busy machine delivers a reset later. */
async function checkUntilClosed({ isClosed }: Ends): Promise<void> {
  let isOpen = true;
  void isClosed.then(() => (isOpen = false));
  await vi.waitUntil(() => {
    vi.advanceTimersByTime(CHECK_INTERVAL_MS);
    return !isOpen;
  }, WAIT_OPTIONS);
}

test.each(["TCP", "TLS"] as const)(
  "a sender over %s that resets its connection is noticed, although its bytes wait for the receiver",
  async (protocol) => {
    const ends = await join(protocol);
    await sendUntilBlocked(ends);
    ends.sender.resetAndDestroy();
    await checkUntilClosed(ends);
    const [error] = (await once(ends.receiver.resume(), "error")) as [Error];
    expect(error.message).toBe("read ECONNRESET");
  },
);

test("a sender that resets its connection after its FIN is noticed", async () => {
  const ends = await join("TCP");
  ends.sender.end();
  await once(ends.receiver.resume(), "end");
  ends.sender.resetAndDestroy();
  await checkUntilClosed(ends);
});

test.each(["TCP", "TLS"] as const)(
  "a receiver may pause for hours, and gets all bytes of a sender over %s afterwards",
  async (protocol) => {
    const ends = await join(protocol);
    await sendUntilBlocked(ends);
    vi.advanceTimersByTime(HOUR_MS);
    ends.source.end();
    let received = 0;
    for await (const chunk of ends.receiver) received += (chunk as Buffer).length;
    expect(received).toBe(LARGE_BYTES);
  },
);

test("what has arrived before a reset is still passed to a slow receiver", async () => {
  const ends = await join("TCP");
  await sendUntilBlocked(ends);
  ends.sender.resetAndDestroy();
  vi.advanceTimersByTime(CHECK_INTERVAL_MS);
  const before = ends.splice.bytesFromFirst;
  ends.receiver.resume();
  await ends.isClosed;
  expect(ends.splice.bytesFromFirst).toBeGreaterThan(before);
});
