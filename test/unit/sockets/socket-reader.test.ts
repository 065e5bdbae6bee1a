import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { connectSocket, setReceiver } from "../../../sockets/socket-reader.ts";

const SENT = Buffer.alloc(4 * 1024 * 1024, "0123456789");

test("reads grow although a receiver holds the bytes of each, which stay unchanged until it resumes", async () => {
  const server = createServer((socket) => socket.end(SENT)).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const socket = connectSocket({ host: "127.0.0.1", port });
  const received: Buffer[] = [];
  setReceiver(socket, (bytes) => {
    setImmediate(() => {
      received.push(Buffer.from(bytes));
      socket.resume();
    });
    return false;
  });
  socket.resume();
  await once(socket, "end");
  expect(Buffer.concat(received).equals(SENT)).toBe(true);
  expect(Math.max(...received.map(({ length }) => length))).toBeGreaterThan(16 * 1024);
});
