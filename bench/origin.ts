/**
 * The local server of the benchmarks, on bare sockets so that it uses little CPU itself: `/` returns a greeting,
 * `/bytes?n=` returns that many bytes, and request bodies are read and counted, slowly if they are posted to `/slow`.
 */
import { createServer } from "node:net";

const HELLO = Buffer.from(
  "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 13\r\n\r\nHello World!\n",
);
const HEAD_END = Buffer.from("\r\n\r\n");
const SLOW_READ_BYTES = 2_000_000;
const SLOW_REST_MS = 20;
const CHUNK = Buffer.alloc(256 * 1024, "a");

const server = createServer((socket) => {
  socket.setNoDelay(true);
  socket.on("error", () => socket.destroy());
  let pending = Buffer.alloc(0);
  let bodyLeft = 0;
  let bodyRead = 0;
  let isSlow = false;
  let sinceRest = 0;
  socket.on("data", (chunk) => {
    if (bodyLeft > 0) {
      bodyLeft -= chunk.length;
      if (isSlow) restAfter(chunk.length);
      if (bodyLeft <= 0) answer(`read ${bodyRead}\n`);
      return;
    }
    pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    for (let end = pending.indexOf(HEAD_END); end >= 0; end = pending.indexOf(HEAD_END)) {
      const head = pending.toString("latin1", 0, end);
      pending = pending.subarray(end + 4);
      const length = Number(/\r\ncontent-length: (\d+)/i.exec(head)?.[1] ?? 0);
      if (length > 0) {
        bodyRead = length;
        isSlow = head.startsWith("POST /slow ");
        bodyLeft = length - pending.length;
        pending = Buffer.alloc(0);
        if (bodyLeft <= 0) answer(`read ${bodyRead}\n`);
      } else if (head.startsWith("GET /bytes?n=")) sendBytes(parseInt(head.slice(13), 10));
      else socket.write(HELLO);
    }
  });

  function restAfter(bytes: number): void {
    sinceRest += bytes;
    if (sinceRest < SLOW_READ_BYTES) return;
    sinceRest = 0;
    socket.pause();
    setTimeout(() => socket.resume(), SLOW_REST_MS);
  }

  function answer(text: string): void {
    bodyLeft = 0;
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`);
  }

  function sendBytes(count: number): void {
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${count}\r\n\r\n`);
    let left = count;
    const more = (): void => {
      while (left > 0 && !socket.destroyed) {
        const part = left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK;
        left -= part.length;
        if (!socket.write(part)) return void socket.once("drain", more);
      }
    };
    more();
  }
});

server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  if (address && typeof address === "object") process.send?.({ port: address.port });
});
