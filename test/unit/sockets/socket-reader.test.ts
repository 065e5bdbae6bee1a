/** Sockets whose bytes go to a receiver, which may hold them until it resumes the socket. */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer as createTcpServer } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { connectSocket, connectTlsSocket, setReceiver } from "../../../sockets/socket-reader.ts";
import { createCertificate } from "../../harness/fakes/certificate.ts";

const SENT = randomBytes(8 * 1024 * 1024);
const FIRST_READ_MAX_BYTES = 4 * 1024;
const certificate = createCertificate();

const send = (socket: Socket): void =>
  void socket
    .on("error", () => undefined)
    .resume()
    .end(SENT);

const connectTcp = (port: number) => connectSocket({ port, host: "127.0.0.1" });
const connectTls = (port: number) => {
  const trust = { ca: certificate.cert, servername: "localhost" };
  return connectTlsSocket({ port, host: "127.0.0.1", ...trust, allowHalfOpen: true });
};

/** @returns what the server sends, read by read. The receiver holds the bytes of each until other events were handled. */
async function receive(server: Server, connect: (port: number) => Socket): Promise<Buffer[]> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const socket = connect((server.address() as AddressInfo).port);
  const reads: Buffer[] = [];
  const { promise: complete, resolve } = Promise.withResolvers<void>();
  let count = 0;
  setReceiver(socket, (held) => {
    setImmediate(() => {
      reads.push(Buffer.from(held));
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
  return reads;
}

test.each([
  ["TCP", () => createTcpServer(send), connectTcp],
  ["TLS", () => createTlsServer(certificate, send), connectTls],
])(
  "bytes of %s that the receiver holds stay unchanged until it resumes",
  async (_, create, connect) => {
    const reads = await receive(create(), connect);
    expect(Buffer.concat(reads).equals(SENT)).toBe(true);
  },
);

test("reads grow also when the receiver holds the bytes of each, as one that writes to TLS does", async () => {
  const reads = await receive(createTcpServer(send), connectTcp);
  const largest = Math.max(...reads.map(({ length }) => length));
  expect(largest).toBeGreaterThan(FIRST_READ_MAX_BYTES);
});

/** Sends without end, and counts what the kernel has taken. */
const FLOOD = `
  const { parentPort, workerData } = require("node:worker_threads");
  const part = Buffer.alloc(64 * 1024);
  const server = require("node:net").createServer((socket) => {
    const send = () => socket.write(part, (error) => {
      if (error) return;
      Atomics.add(workerData, 0, part.length);
      send();
    });
    socket.on("error", () => server.close());
    for (let n = 0; n < 16; n += 1) send();
  });
  server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
`;

test("a socket whose sender is faster than its receiver leaves turns to others", async () => {
  const sent = new Int32Array(new SharedArrayBuffer(4));
  const sender = new Worker(FLOOD, { eval: true, workerData: sent });
  const [port] = (await once(sender, "message")) as [number];
  const socket = connectTcp(port);
  let received = 0;
  let turnBytes = 0;
  let mostBytes = 0;
  const { promise: isDone, resolve: finish } = Promise.withResolvers<void>();
  setReceiver(socket, (bytes) => {
    received += bytes.length;
    if (turnBytes === 0) setImmediate(() => (turnBytes = 0));
    turnBytes += bytes.length;
    mostBytes = Math.max(mostBytes, turnBytes);
    if (received > SENT.length) finish();
    // The sender goes on meanwhile, until the kernel has enough for the next read.
    const untilMs = performance.now() + 20;
    while (Atomics.load(sent, 0) - received < 512 * 1024 && performance.now() < untilMs);
    return true;
  });
  socket.resume();
  await isDone;
  socket.destroy();
  await sender.terminate();
  expect(mostBytes).toBeLessThanOrEqual(512 * 1024);
});
