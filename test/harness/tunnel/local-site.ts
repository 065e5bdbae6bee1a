/** A local web server with a page that uses scripts, fetch, server-sent events and a WebSocket. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";

export interface LocalSite extends AsyncDisposable {
  port: number;
}

/** One gray pixel. */
const PIXEL = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNoAAAAggCBd81ytgAAAABJRU5ErkJggg==",
  "base64",
);

const PAGE = `<!doctype html>
<html lang="en"><title>A site</title>
<h1>A site</h1><img src="/pixel.png" alt="a pixel">
<script src="/app.js"></script>`;

/** Stores what it received in `window.met`, for a test to read. */
const SCRIPT = `
window.met = { events: [], messages: [] };
fetch("/echo?q=%20", { method: "POST", body: "posted ✓" })
  .then((answer) => answer.text())
  .then((text) => (met.posted = text));
const events = new EventSource("/events");
events.addEventListener("tick", ({ data }) => {
  met.events.push(data);
  if (data === "last") events.close();
});
const socket = new WebSocket(location.href.replace("http", "ws") + "socket", "chat");
socket.binaryType = "arraybuffer";
socket.onopen = () => ["one", "two", new Uint8Array([1, 2, 3])].forEach((item) => socket.send(item));
socket.onmessage = ({ data }) => {
  met.messages.push(typeof data === "string" ? data : [...new Uint8Array(data)].join());
  if (met.messages.length === 3) socket.close(4001, "enough");
};
socket.onclose = ({ code, reason }) => (met.closed = [socket.protocol, code, reason]);
`;

export async function startLocalSite(): Promise<LocalSite> {
  const server = createServer((request, response) => {
    const send = (type: string, body: string | Buffer): void => {
      response.setHeader("content-type", type);
      response.end(body);
    };
    switch (request.url) {
      case "/":
        return send("text/html; charset=utf-8", PAGE);
      case "/app.js":
        return send("text/javascript; charset=utf-8", SCRIPT);
      case "/pixel.png":
        return send("image/png", PIXEL);
      case "/events":
        return sendEvents(response);
      case "/echo?q=%20":
        response.setHeader("content-type", "text/plain; charset=utf-8");
        request.pipe(response);
        return;
      default:
        response.statusCode = 404;
        return send("text/plain", "not found");
    }
  });
  const sockets = new WebSocketServer({ server, path: "/socket" });
  sockets.on("connection", (socket) => {
    socket.on("message", (data, isBinary) => socket.send(data, { binary: isBinary }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets.clients) socket.terminate();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Sends the events one after the other, each in its own turn of the event loop. */
function sendEvents(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
  const ticks = ["first", "second", "last"];
  const next = (): void => {
    const tick = ticks.shift();
    if (tick === undefined) return void response.end();
    response.write(`event: tick\ndata: ${tick}\n\n`, () => setImmediate(next));
  };
  next();
}
